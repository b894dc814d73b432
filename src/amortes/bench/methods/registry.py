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
    """What a method is, who makes it, and how reports show it."""

    about: str
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


def _ours(acquisition: str, about: str) -> Entry:
    return Entry(
        about=f"ours: {about}",
        make="ours:OursFactory",
        model="ours",
        acquisition=acquisition,
    )


def _map(acquisition: str, about: str) -> Entry:
    return Entry(
        about=f"MAP Gaussian process (BoTorch), {about}",
        make="map_gp:MapGP",
        options=(acquisition,),
        model="map",
        acquisition=acquisition,
    )


def _fully_bayesian(acquisition: str, about: str) -> Entry:
    return Entry(
        about=f"fully Bayesian Gaussian process (NUTS, the paper's prior), {about}",
        make="fully_bayesian:FullyBayesian",
        options=(acquisition,),
        model="fb",
        acquisition=acquisition,
    )


_SMAC = "pip install 'amortes[bench,smac]'"
# The metadata of HEBO ask for versions that nothing else works with.
_HEBO = "pip install 'amortes[hebo]' && pip install --no-deps HEBO==0.3.6"

METHODS: dict[str, Entry] = {
    "auto": _ours("auto", "the default policy, logei and later, with noise, jes"),
    "pes": _ours("pes", "information about the place of the optimum"),
    "mes": _ours("mes", "information about its value"),
    "jes": _ours("jes", "information about both"),
    "ei": _ours("ei", "expected improvement"),
    "logei": _ours("logei", "its logarithm"),
    "random": Entry(
        about="uniform random points",
        make="random_search:RandomSearch",
        label="random search",
        marker="x",
    ),
    "botorch": Entry(
        about="map-lognei if the problem has noise, else map-logei",
        make="map_gp:careful",
        label="BoTorch",
        colour="brown",
    ),
    "map-logei": _map("logei", "LogEI"),
    "map-lognei": Entry(
        about="MAP Gaussian process (BoTorch), noisy LogEI",
        make="map_gp:MapGP",
        options=("lognei",),
        label="MAP GP noisy LogEI",
        colour="brown",
        marker="v",
    ),
    "map-gibbon": _map("gibbon", "max-value entropy search (GIBBON)"),
    "map-jes": _map("jes", "joint entropy search, 64 optima"),
    "fb-ei": _fully_bayesian("ei", "EI"),
    "fb-logei": _fully_bayesian("logei", "LogEI"),
    "fb-mes": _fully_bayesian("mes", "GIBBON"),
    "fb-jes": _fully_bayesian("jes", "JES"),
    "fb-pes": _fully_bayesian("pes", "PES"),
    "optuna-tpe": Entry(
        about="Optuna's tree-structured Parzen estimator",
        make="optuna_samplers:OptunaMethod",
        options=("tpe",),
        label="Optuna TPE",
        colour="sky",
        marker="P",
    ),
    "optuna-gp": Entry(
        about="Optuna's Gaussian process",
        make="optuna_samplers:OptunaMethod",
        options=("gp",),
        label="Optuna GP",
        colour="amber",
        marker="X",
    ),
    "hebo": Entry(
        about="HEBO: Gaussian process on power-transformed results, MACE",
        make="hebo:HeboMethod",
        install=_HEBO,
        label="HEBO",
        colour="teal",
    ),
    "smac-bb": Entry(
        about="SMAC's Gaussian process (BlackBoxFacade)",
        make="smac:SmacMethod",
        options=("bb",),
        install=_SMAC,
        label="SMAC GP",
        colour="indigo",
        marker="h",
    ),
    "smac-hpo": Entry(
        about="SMAC's random forest (HyperparameterOptimizationFacade)",
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
