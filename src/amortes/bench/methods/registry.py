"""Methods by name.

    method_factory("auto")                      ours, with the network that comes by default
    method_factory("jes@kernel-paper")          another network that comes with amortes
    method_factory("jes@runs/best.safetensors") the network in a file
    method_factory("fb-jes")                    others; METHODS says what there is

Nothing but names is loaded until a factory is asked for.
"""

from amortes.bench.protocol import MethodFactory
from amortes.errors import ConfigError, MissingExtraError
from amortes.optimiser.model import ACQUISITIONS

METHODS: dict[str, str] = {
    "auto": "ours: the default policy, logei and later, with noise, jes",
    "pes": "ours: information about the place of the optimum",
    "mes": "ours: information about its value",
    "jes": "ours: information about both",
    "ei": "ours: expected improvement",
    "logei": "ours: its logarithm",
    "random": "uniform random points",
    "botorch": "map-lognei if the problem has noise, else map-logei",
    "map-logei": "MAP Gaussian process (BoTorch), LogEI",
    "map-lognei": "MAP Gaussian process (BoTorch), noisy LogEI",
    "map-gibbon": "MAP Gaussian process (BoTorch), max-value entropy search (GIBBON)",
    "map-jes": "MAP Gaussian process (BoTorch), joint entropy search, 64 optima",
    "fb-ei": "fully Bayesian Gaussian process (NUTS, the paper's prior), EI",
    "fb-logei": "fully Bayesian Gaussian process (NUTS, the paper's prior), LogEI",
    "fb-mes": "fully Bayesian Gaussian process (NUTS, the paper's prior), GIBBON",
    "fb-jes": "fully Bayesian Gaussian process (NUTS, the paper's prior), JES",
    "fb-pes": "fully Bayesian Gaussian process (NUTS, the paper's prior), PES",
    "optuna-tpe": "Optuna's tree-structured Parzen estimator",
    "optuna-gp": "Optuna's Gaussian process",
    "hebo": "HEBO: Gaussian process on power-transformed results, MACE",
    "smac-bb": "SMAC's Gaussian process (BlackBoxFacade)",
    "smac-hpo": "SMAC's random forest (HyperparameterOptimizationFacade)",
}


def method_factory(name: str) -> MethodFactory:
    """What makes runs of the method; a ConfigError lists all names if there is none of this one."""
    kind, at, weights = name.partition("@")
    if kind not in METHODS:
        raise ConfigError(f"method: must be one of {', '.join(METHODS)}, not {name!r}.")
    if at and (kind not in ACQUISITIONS or not weights):
        raise ConfigError(
            f"method: {name!r} does not name weights of ours; write for instance "
            f"jes@kernel-paper or jes@path/to/file.safetensors, for {', '.join(ACQUISITIONS)}."
        )
    if kind in ACQUISITIONS:
        return _ours(kind, weights)
    try:
        return _other(kind)
    except ImportError as error:
        if (error.name or "").startswith("amortes"):
            raise
        extras = {"smac": "bench,smac", "hebo": "hebo"}.get(kind.partition("-")[0], "bench")
        command = f"pip install 'amortes[{extras}]'"
        if kind == "hebo":  # its metadata ask for versions that nothing else works with
            command += " && pip install --no-deps HEBO==0.3.6"
        raise MissingExtraError(
            f"method {name!r} needs {error.name or 'a package'}, which is not installed: "
            f"`{command}`."
        ) from error


def _ours(score: str, weights: str) -> MethodFactory:
    from amortes.bench.methods.ours import OursFactory
    from amortes.pretrained import DEFAULT

    return OursFactory(score, weights or DEFAULT)


def _other(kind: str) -> MethodFactory:
    family, _, variant = kind.partition("-")
    if family == "random":
        from amortes.bench.methods.random_search import RandomSearch

        return RandomSearch
    if family in ("map", "botorch"):
        from amortes.bench.methods.map_gp import MapGP

        return lambda problem, seed: MapGP(
            problem, seed, variant or ("lognei" if problem.noise_sd else "logei")
        )
    if family == "hebo":
        from amortes.bench.methods.hebo import HeboMethod

        return HeboMethod
    if family == "fb":
        from amortes.bench.methods.fully_bayesian import FullyBayesian

        return lambda problem, seed: FullyBayesian(problem, seed, variant)
    if family == "smac":
        from amortes.bench.methods.smac import SmacMethod

        return lambda problem, seed: SmacMethod(problem, seed, variant)
    from amortes.bench.methods.optuna_samplers import OptunaMethod

    return lambda problem, seed: OptunaMethod(problem, seed, variant)
