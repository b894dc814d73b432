"""Which parameters a study has, and on what those that are not in every trial depend.

Objectives of Optuna may suggest parameters only if others have certain values, and say so nowhere.
It can be learned: c depends on p if p has a finite number of values, every trial with c has p, and
no value of p was seen both with and without c. Then c is active if p is, at a value seen with c. Of
several such p it is the one whose values have been repeated most: the least likely by chance. A
parameter that depends on none (but, say, on a float) is left out, and one whose range has changed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial

from amortes.optimiser.conditions import Condition

Distributions = Mapping[str, BaseDistribution]


@dataclass(frozen=True)
class Structure:
    """Parameters that vary, by name, parents first; and what the activity of some depends on.

    Values of conditions are as Optuna stores them.
    """

    distributions: dict[str, BaseDistribution]
    conditions: dict[str, Condition]

    @classmethod
    def learn(
        cls, trials: Sequence[FrozenTrial], candidates: Distributions | None = None
    ) -> "Structure":
        """From complete trials; about these parameters or, by default, all that occur."""
        if candidates is None:
            candidates = _consistent(trials)
        names = [name for name in sorted(candidates) if not candidates[name].single()]
        have = {
            name: [t for t in trials if t.distributions.get(name) == candidates[name]]
            for name in names
        }
        always = {name: candidates[name] for name in names if len(have[name]) in (0, len(trials))}
        found = cls(always, {})
        # Parents must come first: go round until nothing is added.
        waiting = sorted(set(names) - always.keys(), key=lambda name: (-len(have[name]), name))
        while waiting:
            left = [name for name in waiting if not found._attach(name, candidates, have)]
            if len(left) == len(waiting):
                break
            waiting = left
        return found

    def without(self, names: set[str]) -> "Structure":
        """The structure without some parameters that no other depends on."""
        return Structure(
            {name: d for name, d in self.distributions.items() if name not in names},
            {name: c for name, c in self.conditions.items() if name not in names},
        )

    @property
    def shared(self) -> "Structure":
        """The parameters that all trials have."""
        return self.without(set(self.conditions))

    def _attach(
        self, name: str, candidates: Distributions, have: Mapping[str, list[FrozenTrial]]
    ) -> bool:
        """Find the parent of a parameter, if it has one among those known."""
        having = {trial.number for trial in have[name]}
        best: tuple[int, Condition] | None = None
        for parent, distribution in self.distributions.items():
            if isinstance(distribution, FloatDistribution) and distribution.step is None:
                continue
            seen: dict[bool, list[float]] = defaultdict(list)
            for trial in have[parent]:
                value = distribution.to_internal_repr(trial.params[parent])
                seen[trial.number in having].append(value)
            values = frozenset(seen[True])
            if len(seen[True]) < len(having) or values & set(seen[False]):
                continue
            repeated = len(have[parent]) - len(values) - len(set(seen[False]))
            if best is None or repeated > best[0]:
                best = repeated, Condition(parent, tuple(sorted(values)))
        if best is None:
            return False
        self.distributions[name] = candidates[name]
        self.conditions[name] = best[1]
        return True


def _consistent(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """All parameters but those with more than one distribution."""
    found: dict[str, BaseDistribution] = {}
    changed = set()
    for trial in trials:
        for name, distribution in trial.distributions.items():
            # Compared, not hashed: choices may be lists.
            if found.setdefault(name, distribution) != distribution:
                changed.add(name)
    return {name: distribution for name, distribution in found.items() if name not in changed}
