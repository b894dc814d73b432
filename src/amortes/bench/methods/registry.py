"""Methods by name. To add one, write a module and an `Entry` here: all else follows from it.

    method_factory("auto")                      ours, with the network that comes by default
    method_factory("jes@kernel-paper")          another network that comes with amortes
    method_factory("jes@runs/best.safetensors") the network in a file
    method_factory("fb-jes")                    others; METHODS says what there is

Nothing but names is loaded until a factory is asked for.
"""

import importlib
from dataclasses import dataclass

from amortes.bench.protocol import MethodFactory
from amortes.errors import ConfigError, MissingExtraError


@dataclass(frozen=True)
class Entry:
    """Who makes a method, and how reports show it."""

    make: str
    """Module (in `amortes.bench.methods`) and name of what takes a problem, a seed and `option`, if
    there is one, to a `Method`; of ours, what takes the acquisition and weights to a factory."""
    option: str = ""
    label: str = ""
    colour: str = "#868e96"
    marker: str = "*"
    model: str = "other"  # a key of `report.names.MODELS`; others are reported by their label
    install: str = "pip install 'amortes[bench]'"

    @property
    def acquisition(self) -> str:
        """The acquisition function, if the model is known."""
        return "" if self.model == "other" else self.option


def _on(model: str, make: str, *acquisitions: str) -> dict[str, Entry]:
    """Acquisition functions of one model."""
    prefix = "" if model == "ours" else f"{model}-"
    return {f"{prefix}{name}": Entry(make, name, model=model) for name in acquisitions}


_OPTUNA, _SMAC = "optuna_samplers:OptunaMethod", "smac:SmacMethod"
_WITH_SMAC = "pip install 'amortes[bench,smac]'"
# The metadata of HEBO ask for versions that nothing else works with.
_WITH_HEBO = "pip install 'amortes[hebo]' && pip install --no-deps HEBO==0.3.6"

METHODS: dict[str, Entry] = {
    **_on("ours", "ours:OursFactory", "auto", "pes", "mes", "jes", "ei", "logei"),
    "random": Entry("random_search:RandomSearch", "", "random search", marker="x"),
    "botorch": Entry("map_gp:careful", "", "BoTorch", "#8a6d2b"),
    **_on("map", "map_gp:MapGP", "logei", "gibbon", "jes"),
    "map-lognei": Entry("map_gp:MapGP", "lognei", "MAP GP noisy LogEI", "#8a6d2b", "v"),
    **_on("fb", "fully_bayesian:FullyBayesian", "ei", "logei", "mes", "jes", "pes"),
    "optuna-tpe": Entry(_OPTUNA, "tpe", "Optuna TPE", "#2f93cf", "P"),
    "optuna-gp": Entry(_OPTUNA, "gp", "Optuna GP", "#b97d00", "X"),
    "hebo": Entry("hebo:HeboMethod", "", "HEBO", "#0f7c8a", install=_WITH_HEBO),
    "smac-bb": Entry(_SMAC, "bb", "SMAC GP", "#4b3f9e", "h", install=_WITH_SMAC),
    "smac-hpo": Entry(_SMAC, "hpo", "SMAC forest", "#6b7a1e", "p", install=_WITH_SMAC),
}


def method_factory(name: str) -> MethodFactory:
    """What makes runs of the method; a ConfigError lists all names if there is none of this one."""
    kind, at, weights = name.partition("@")
    if kind not in METHODS:
        raise ConfigError(f"method: must be one of {', '.join(METHODS)}, not {name!r}.")
    entry = METHODS[kind]
    if at and (entry.model != "ours" or not weights):
        ours = ", ".join(name for name, entry in METHODS.items() if entry.model == "ours")
        raise ConfigError(
            f"method: {name!r} does not name weights of ours; write for instance "
            f"jes@kernel-paper or jes@path/to/file.safetensors, for {ours}."
        )
    module, _, maker = entry.make.partition(":")
    try:
        make = getattr(importlib.import_module(f"amortes.bench.methods.{module}"), maker)
    except ImportError as error:
        if (error.name or "").startswith("amortes"):
            raise
        raise MissingExtraError(
            f"method {name!r} needs {error.name or 'a package'}, which is not installed: "
            f"`{entry.install}`."
        ) from error
    if entry.model == "ours":
        from amortes.pretrained import DEFAULT

        factory: MethodFactory = make(entry.acquisition, weights or DEFAULT)
        return factory
    options = [entry.option] if entry.option else []
    return lambda problem, seed: make(problem, seed, *options)
