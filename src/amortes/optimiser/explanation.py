"""Why a config is worth evaluating, and how much each parameter matters.

    print(opt.explain(trial).text)

Whether a config explores or exploits goes by its upper confidence bound, mean + sd (the utility u,
bigger is better, without noise), above what an average config of the space has for a mean:

    exploration = sd / (sd + max(mean - average, 0)),

the share that uncertainty has in it. From a half on the config *explores*, below it *exploits*. It
*repeats* another result if it is within `CLOSE` lengthscales of it and the noise is larger than
what the function changes over that distance, roughly distance x (sd of the means over the space).

A trial is judged by what was known when it was asked for: the results of trials with smaller
numbers. (If several are evaluated at a time, some of these may have come later.)

Importance. The total effect of parameter i on a function m of independent parameters (Sobol, 1993)
is the part of the variance of m that would be left if all parameters but i were known,

    T_i = E[Var(m | all but i)] / Var(m) = E[(m(A) - m(A with i from B))^2] / (2 Var(m)),

with A and B independent uniform configs (Jansen, 1999). Unlike a first-order effect it also counts
what a parameter does only together with others. Total effects of interacting parameters add up to
more than 1; divided by their sum they are shares.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.optimiser.design import sample
from amortes.optimiser.prediction import Prediction, predict
from amortes.optimiser.space import Config, Space
from amortes.optimiser.suggest import Suggester
from amortes.optimiser.text import config_text, html_table, number, printable, shortened
from amortes.optimiser.trials import Ledger, Trial, copied
from amortes.random import generator

CLOSE = 0.1
"""Lengthscales within which the function hardly changes: a correlation of at least 0.995."""
CONFIGS = 256
"""Configs that the average is taken over."""
PAIRS = 512
"""Pairs of configs by which effects are estimated."""
Kind = Literal["given", "initial", "explore", "exploit", "repeat"]


@dataclass(frozen=True)
class Neighbour:
    """The closest trial that has a result."""

    number: int
    value: float
    distance: float
    unit: Literal["lengthscales", "ranges"]
    """Unit of the distance: ranges of the parameters if the network has no lengthscales."""
    differs: dict[str, tuple[Any, Any]]
    """For each parameter that differs, its value there and here; the largest difference first."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a config is worth evaluating. `text` says it in words.

    The how-to guide "Predict and explain" says how to read it.
    """

    config: Config
    trial: Trial | None
    """The trial that is explained; None for a config."""
    kind: Kind
    """given: a past result; initial: chosen to cover the space; others: chosen by the model."""
    exploration: float | None = None
    """Share of uncertainty in the score of the config: 1 explores, 0 exploits."""
    prediction: Prediction | None = None
    """Prediction of the function without noise; None if there was no result yet."""
    information: float | None = None
    """Expected information about the optimum and its value (JES), in nats."""
    improvement: float | None = None
    """Expected improvement over the best config so far, in the units of the values."""
    best: float | None = None
    """The best posterior mean among the configs evaluated so far."""
    noise_sd: float | None = None
    """Standard deviation of the noise, if the network can infer it."""
    nearest: Neighbour | None = None
    """The closest result."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready fields."""
        fields = dict(vars(self))
        fields["trial"] = None if self.trial is None else self.trial.number
        fields["prediction"] = None if self.prediction is None else self.prediction.to_dict()
        fields["nearest"] = None if self.nearest is None else dataclasses.asdict(self.nearest)
        return fields | {"text": self.text}

    @property
    def text(self) -> str:
        """The explanation in words, one sentence per line."""
        return "\n".join([f"{self._name}: {config_text(self.config)}.", *self._sentences()])

    @property
    def _name(self) -> str:
        return "This config" if self.trial is None else f"Trial {self.trial.number}"

    def _sentences(self) -> list[str]:
        said = [self._reason()]
        if self.prediction is not None:
            said += [
                f"Its expected value is {self.prediction.text}; that of the best config so far is "
                f"{number(self.best, 4)}.",
                f"Evaluating it is expected to give {number(self.information, 3)} nats of "
                f"information about the optimum (JES), and to improve on the best config by "
                f"{number(self.improvement, 3)}.",
            ]
        if (near := self.nearest) is not None:
            differs = ", ".join(
                f"{printable(name)} ({shortened(there, 4)} there, {shortened(here, 4)} here)"
                for name, (there, here) in list(near.differs.items())[:3]
            )
            how = f"; it differs most in {differs}" if differs else ": it is the same config"
            said.append(
                f"The closest result is {number(near.value, 4)}, from trial {near.number}, "
                f"{number(near.distance, 2)} {near.unit} away{how}."
            )
        if self.trial is not None and self.trial.status == "done":
            said.append(f"The result was {number(self.trial.value, 4)}.")
        elif self.trial is not None and self.trial.status == "failed":
            said.append(f"It failed: {printable(self.trial.reason or 'no reason was given')}.")
        return said

    def _reason(self) -> str:
        if self.kind == "given":
            return "It is one of the past results that the run started from."
        if self.kind == "initial":
            return "It is one of the first trials, which are spread over the space."
        if self.kind == "repeat" and self.nearest is not None:
            noise = "" if self.noise_sd is None else f" (sd {number(self.noise_sd, 3)})"
            return (
                f"It repeats trial {self.nearest.number}: the two configs are so close that the "
                f"noise{noise} matters more than the difference between them."
            )
        share = self.exploration or 0.0
        if share == 1.0:
            return "It explores: its whole score is uncertainty, none of it its expected value."
        return (
            f"It {self.kind}s: {share:.0%} of its score comes from uncertainty, {1 - share:.0%} "
            f"from an expected value better than average."
        )

    def __repr__(self) -> str:
        parts = [self._name.lower(), self.kind]
        if self.prediction is not None:
            parts += [
                f"value {self.prediction.text}",
                f"{number(self.information, 3)} nats",
                f"improvement {number(self.improvement, 3)}",
            ]
        if self.nearest is not None:
            parts.append(f"closest to trial {self.nearest.number}")
        return f"Explanation({'; '.join(parts)})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Any]] = [("config", config_text(self.config))]
        rows += [("" if i else "reason", said) for i, said in enumerate(self._sentences())]
        return html_table(rows, title=f"Why {self._name.lower()}?")


def explain(
    suggester: Suggester, subject: Trial | Mapping[str, Any], *, past: int, level: float
) -> Explanation:
    """The explanation of a trial of the suggester's ledger, or of a config as things are now.

    The config of a pending trial counts as that trial. The first `past` trials are results that
    were there before the first was asked for.
    """
    ledger, space = suggester.ledger, suggester.space
    config = space.check(subject.config if isinstance(subject, Trial) else subject)
    trial = subject if isinstance(subject, Trial) else ledger.pending(config)
    known = ledger if trial is None else ledger.before(trial.number)
    kind: Kind = "explore"
    if trial is not None and trial.number < past:
        kind = "given"
    elif trial is not None and len(known.having("done", "failed", "pending")) < suggester.initial:
        kind = "initial"
    explanation = Explanation(copied(config), trial.copy() if trial else None, kind)
    if trial is not None and not known.having("done"):
        return dataclasses.replace(explanation, kind="given" if kind == "given" else "initial")
    since = ledger.trials[len(known.trials) :]
    unchanged = not any(t.status in ("done", "failed") for t in since)
    fitted = suggester.fitted() if unchanged else suggester.fit(known)
    (prediction,) = predict(fitted, space, [config], level=level, observation_noise=False)
    x = space.encode(config)[None]
    sign = 1.0 if suggester.maximise else -1.0
    with torch.no_grad():
        pending = known.points("pending")
        aware = fitted.with_pending(pending) if len(pending) else fitted
        information = float(aware.score("jes", x))
        improvement = float(fitted.expected_improvement(x))
        best = sign * float((sign * fitted.posterior_mean(known.points("done"))).max())
        everywhere = fitted.posterior_mean(sample(space, CONFIGS, generator(suggester.seed)))
        sd = float(fitted.latent(x).sd)
    above = max(sign * (prediction.mean - float(everywhere.mean())), 0.0)
    exploration = sd / (sd + above) if sd > 0 else 0.0
    nearest = _nearest(fitted, known, config, x[0])
    if kind == "explore":
        kind = "explore" if exploration >= 0.5 else "exploit"
        noise, change = fitted.noise_sd or 0.0, nearest.distance * float(everywhere.std())
        if not nearest.differs or (nearest.distance <= CLOSE and noise > change):
            kind = "repeat"
    return dataclasses.replace(
        explanation,
        kind=kind,
        exploration=exploration,
        prediction=prediction,
        information=information,
        improvement=improvement,
        best=best,
        noise_sd=fitted.noise_sd,
        nearest=nearest,
    )


def _nearest(fitted: Fitted, ledger: Ledger, config: Config, x: Tensor) -> Neighbour:
    """The trial with a result that is closest to x, `d`."""
    done = ledger.having("done")
    scale = fitted.lengthscale
    steps = (x - ledger.points_of(done)) / (torch.ones_like(x) if scale is None else scale)
    distances = steps.square().sum(1).sqrt()
    i = int(distances.argmin())
    there = done[i]
    along = {k: float(steps[i, place].norm()) for k, place in ledger.space.places.items()}
    differs = {
        name: (there.config.get(name), config.get(name))
        for name in sorted(along, key=lambda name: -along[name])
        if along[name] > 0.0 and math.isfinite(along[name])
    }
    assert there.value is not None
    unit: Literal["lengthscales", "ranges"] = "ranges" if scale is None else "lengthscales"
    return Neighbour(there.number, there.value, float(distances[i]), unit, differs)


def importance(
    mean: Callable[[Tensor], Tensor], space: Space, rng: torch.Generator
) -> dict[str, float]:
    """Shares of the total effects on `mean`, `m x d -> m`, that sum to 1, largest first.

    Over all values of the parameters, whatever constraints or pool say; one that only matters for
    some values of another counts where it does. All are 0 if the mean is the same everywhere.
    """
    A, B = torch.rand(2, PAIRS, space.d, generator=rng, dtype=torch.float64)
    mixed = []
    for place in space.places.values():
        U = A.clone()
        U[:, place] = B[:, place]
        mixed.append(space.project(U))
    with torch.no_grad():
        at_A = mean(space.project(A))
        effects = torch.stack([(mean(X) - at_A).square().mean() for X in mixed])
    total = float(effects.sum())
    shares = (effects / total if total > 0 else effects).tolist()
    return dict(sorted(zip(space.free, shares, strict=True), key=lambda share: -share[1]))
