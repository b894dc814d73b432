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


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Who makes a method, and how reports show it."""

    make: str
    """Module (in `amortes.bench.methods`) and name of what takes a problem, a seed and `options`
    to a `Method`; of ours, what takes the acquisition and weights to a factory."""
    options: tuple[str, ...] = ()
    install: str = "pip install 'amortes[bench]'"
    model: str = "other"  # a key of `report.names.MODELS`; others are reported by their label
    acquisition: str = ""
    label: str = ""
    colour: str = "silver"  # a key of `report.style.COLOURS`
    marker: str = "*"


def _on(model: str, make: str, *acquisitions: str) -> dict[str, Entry]:
    """Acquisition functions of one model."""
    prefix = "" if model == "ours" else f"{model}-"
    return {
        f"{prefix}{name}": Entry(make=make, options=(name,), model=model, acquisition=name)
        for name in acquisitions
    }


_OPTUNA = "optuna_samplers:OptunaMethod"
_SMAC = "pip install 'amortes[bench,smac]'"
# The metadata of HEBO ask for versions that nothing else works with.
_HEBO = "pip install 'amortes[hebo]' && pip install --no-deps HEBO==0.3.6"

METHODS: dict[str, Entry] = {
    **_on("ours", "ours:OursFactory", "auto", "pes", "mes", "jes", "ei", "logei"),
    "random": Entry(make="random_search:RandomSearch", label="random search", marker="x"),
    "botorch": Entry(make="map_gp:careful", label="BoTorch", colour="brown"),
    **_on("map", "map_gp:MapGP", "logei", "gibbon", "jes"),
    "map-lognei": Entry(
        make="map_gp:MapGP",
        options=("lognei",),
        label="MAP GP noisy LogEI",
        colour="brown",
        marker="v",
    ),
    **_on("fb", "fully_bayesian:FullyBayesian", "ei", "logei", "mes", "jes", "pes"),
    "optuna-tpe": Entry(
        make=_OPTUNA, options=("tpe",), label="Optuna TPE", colour="sky", marker="P"
    ),
    "optuna-gp": Entry(
        make=_OPTUNA, options=("gp",), label="Optuna GP", colour="amber", marker="X"
    ),
    "hebo": Entry(make="hebo:HeboMethod", install=_HEBO, label="HEBO", colour="teal"),
    "smac-bb": Entry(
        make="smac:SmacMethod",
        options=("bb",),
        install=_SMAC,
        label="SMAC GP",
        colour="indigo",
        marker="h",
    ),
    "smac-hpo": Entry(
        make="smac:SmacMethod",
        options=("hpo",),
        install=_SMAC,
        label="SMAC forest",
        colour="olive",
        marker="p",
    ),
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
    return lambda problem, seed: make(problem, seed, *entry.options)
