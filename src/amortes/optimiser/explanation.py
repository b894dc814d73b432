"""Why a config is worth evaluating: its predicted value, its expected gain, the closest result.

    print(opt.explain(trial).text)

Whether a config explores or exploits goes by its upper confidence bound, mean + sd (the utility u,
bigger is better, without noise), above what an average config of the space has for a mean:

    exploration = sd / (sd + max(mean - average, 0)),

the share that uncertainty has in it. From a half on the config *explores*, below it *exploits*. It
*repeats* another result if it is within `CLOSE` lengthscales of it and the noise is larger than
what the function changes over that distance, roughly distance x (sd of the means over the space).

A trial is judged by what was known when it was asked for: the results of trials with smaller
numbers. (If several are evaluated at a time, some of these may have come later.)
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.optimiser.design import sample
from amortes.optimiser.prediction import Prediction, predict
from amortes.optimiser.space import Config
from amortes.optimiser.suggest import Suggester
from amortes.optimiser.text import config_text, html_table, number, printable, shortened
from amortes.optimiser.trials import Ledger, Trial
from amortes.random import generator
from amortes.threads import single_thread

CLOSE = 0.1
"""Lengthscales within which the function hardly changes: a correlation of at least 0.995."""
CONFIGS = 256
"""Configs that the average is taken over."""
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


@single_thread()
def explain(
    suggester: Suggester, subject: Trial | Mapping[str, Any], *, past: int, level: float
) -> Explanation:
    """The explanation of a trial of the suggester's ledger, or of a config as things are now.

    The config of a pending trial counts as that trial. The first `past` trials are results that
    were there before the first was asked for.
    """
    ledger = suggester.ledger
    trial = subject if isinstance(subject, Trial) else ledger.pending(subject)
    if trial is None:
        assert not isinstance(subject, Trial)
        explanation = Explanation(ledger.space.check(subject), None, "explore")
        return _judged(explanation, suggester, suggester.fitted(), ledger, level)
    known = ledger.before(trial.number)
    kind: Kind = "explore"
    if trial.number < past:
        kind = "given"
    elif len(known.having("done", "failed", "pending")) < suggester.initial:
        kind = "initial"
    explanation = Explanation(trial.copy().config, trial.copy(), kind)
    if not known.having("done"):
        return dataclasses.replace(explanation, kind="given" if kind == "given" else "initial")
    unchanged = not any(t.status in ("done", "failed") for t in ledger.trials[trial.number :])
    fitted = suggester.fitted() if unchanged else suggester.fit(known)
    return _judged(explanation, suggester, fitted, known, level)


def _judged(
    explanation: Explanation, suggester: Suggester, fitted: Fitted, ledger: Ledger, level: float
) -> Explanation:
    """The explanation with all that the network, fitted to the ledger, says."""
    space = ledger.space
    (prediction,) = predict(
        fitted, space, [explanation.config], level=level, observation_noise=False
    )
    x = space.encode(explanation.config)[None]
    sign = 1.0 if suggester.maximise else -1.0
    with torch.no_grad():
        pending = ledger.points("pending")
        aware = fitted.with_pending(pending) if len(pending) else fitted
        information, improvement = (
            float(aware.score("jes", x)),
            float(fitted.expected_improvement(x)),
        )
        best = sign * float((sign * fitted.posterior_mean(ledger.points("done"))).max())
        everywhere = fitted.posterior_mean(sample(space, CONFIGS, generator(suggester.seed)))
        sd = float(fitted.latent(x).sd)
    above = max(sign * (prediction.mean - float(everywhere.mean())), 0.0)
    exploration = sd / (sd + above) if sd > 0 else 0.0
    nearest = _nearest(fitted, ledger, explanation.config, x[0])
    kind = explanation.kind
    if kind not in ("given", "initial"):
        kind = "explore" if exploration >= 0.5 else "exploit"
        if _repeats(nearest, fitted.noise_sd, float(everywhere.std())):
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


def _repeats(nearest: Neighbour, noise_sd: float | None, spread: float) -> bool:
    """Whether only noise makes the difference to the closest result."""
    if not nearest.differs:
        return True
    return nearest.distance <= CLOSE and (noise_sd or 0.0) > nearest.distance * spread


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
