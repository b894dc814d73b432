"""A Gaussian process with the paper's prior over its hyperparameters, sampled by NUTS.

    l_k ~ LogNormal(-0.75 + log(d) / 2, 0.75),  noise sd ~ LogNormal(-4, 1),  mean ~ N(0, 0.5^2),
    y ~ N(mean, K + sd^2 I),  K_ij = exp(-1/2 sum_k ((x_ik - x_jk) / l_k)^2)

(`amortes.prior.gp`, prior `paper`.) `PaperGP` is BoTorch's fully Bayesian model with this prior, so
BoTorch's own `fit_fully_bayesian_model_nuts` works on it: `fit_by_botorch`. `fit` is the same
sampler with the same settings, but it compiles once for all datasets of about the same size, where
BoTorch's compiles for each number of points, and so at each step of an optimisation: data are
arguments of the compiled function, padded to a multiple of `PADDING` points. A padded point has no
covariance with others, variance 1 and value 0, so all it does is to add a constant to the log
density.

JAX has one thread and float64. Compiling NUTS takes ten seconds per shape of the data, running it
about one; so what has been compiled is kept in `~/.cache/amortes/jax` (or `$AMORTES_CACHE/jax`),
unless the user has configured another compilation cache. In memory it is forgotten now and then:
every compiled piece maps memory, of which an operating system allows 65,000 or so.

Needs the extra `bench`.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import threadpoolctl  # type: ignore[import-untyped]
import torch
from botorch.fit import fit_fully_bayesian_model_nuts
from botorch.models.fully_bayesian import AbstractFullyBayesianSingleTaskGP, MaternPyroModel
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from numpyro.infer import MCMC, NUTS
from torch import Tensor

from amortes.files import cache_folder
from amortes.prior.gp import Marginal, named_prior

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
FORGET_EVERY = 20  # fits after which compiled code leaves memory; a process died after about 120

_fits = itertools.count(1)
PADDING = 16
MIN_NOISE = 1e-6
"""Least noise variance. BoTorch's own, 1e-4, is above a quarter of this prior."""
WARMUP, SAMPLES, THINNING, TREE_DEPTH = 512, 256, 16, 6
"""Defaults of BoTorch: 16 hyperparameter settings are kept."""
PAPER = named_prior("paper")


@contextlib.contextmanager
def jax_for_benchmarks() -> Iterator[None]:
    """Run the block with float64 arrays, and with one thread for XLA and the BLAS it calls.

    XLA reads its flags when the process first computes something with JAX: whoever did so before
    keeps the threads asked for then.
    """
    _configure()
    # LAPACK routines of XLA are those of SciPy, whose threads no JAX setting limits.
    with threadpoolctl.threadpool_limits(1, user_api="blas"), jax.enable_x64(True):
        yield


@contextlib.contextmanager
def compiled_anew() -> Iterator[None]:
    """Run the block as if nothing had been kept on disk, which is how JAX is set up for users."""
    before = jax.config.jax_enable_compilation_cache
    _keep(False)
    try:
        yield
    finally:
        _keep(before)


def _keep(kept: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", kept)
    reset_cache()  # JAX looks at the setting once


def forget_now_and_then() -> None:
    """Let compiled code leave memory every `FORGET_EVERY` calls; called after a fit, untimed."""
    if next(_fits) % FORGET_EVERY == 0:
        jax.clear_caches()


@functools.cache
def _configure() -> None:
    """Process-wide settings of JAX that nobody has made yet; the first call counts."""
    flags = os.environ.get("XLA_FLAGS", "")
    if ONE_THREAD.partition("=")[0] not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}".strip()
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
        # Also what compiles in less than a second: there are hundreds of such pieces.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


class PaperPyroModel(MaternPyroModel):  # type: ignore[misc]
    """The prior as BoTorch wants it: how to sample, and how to load samples into GPyTorch."""

    def sample(self) -> None:
        """Sample hyperparameters and observe the training data (called by NumPyro)."""
        observe(self.train_X_jax, self.train_Y_jax[:, 0], jnp.ones(len(self.train_X_jax)))

    def postprocess_mcmc_samples(self, mcmc_samples: dict[str, Any]) -> dict[str, Tensor]:
        """Tensors for `load_mcmc_samples` from NumPyro's arrays."""
        samples: dict[str, Tensor] = super().postprocess_mcmc_samples(mcmc_samples)
        samples["noise"] = samples.pop("noise_sd").square()
        return samples

    def load_mcmc_samples(
        self, mcmc_samples: dict[str, Tensor]
    ) -> tuple[Any, Any, GaussianLikelihood, None]:
        """Mean, kernel and likelihood whose batch dimension are the samples."""
        mean, kernel, _, _ = super().load_mcmc_samples(mcmc_samples)
        noise = mcmc_samples["noise"].clamp_min(MIN_NOISE)
        constraint = GreaterThan(MIN_NOISE, transform=None, initial_value=noise[:, None])
        likelihood = GaussianLikelihood(batch_shape=noise.shape, noise_constraint=constraint)
        return mean, kernel, likelihood.to(noise), None

    def _get_covar_module(
        self,
        use_scale_kernel: bool,
        batch_shape: torch.Size,
        dtype: torch.dtype,
        device: torch.device,
    ) -> Kernel:
        del use_scale_kernel  # the output scale is 1
        kernel = RBFKernel(ard_num_dims=self.ard_num_dims, batch_shape=batch_shape)
        return kernel.to(dtype=dtype, device=device)


class PaperGP(AbstractFullyBayesianSingleTaskGP):  # type: ignore[misc]
    """BoTorch's fully Bayesian model of X, `n x d`, and standardised y, `n x 1`.

    Not derived from `FullyBayesianSingleTaskGP`, which joint entropy search refuses; see
    `fully_bayesian`.
    """

    _pyro_model_class = PaperPyroModel


def fit(X: Tensor, y: Tensor, seed: int) -> PaperGP:
    """The model of X, `n x d`, and standardised y, `n`, with `SAMPLES / THINNING` samples."""
    with jax_for_benchmarks():
        model: PaperGP = PaperGP(X, y[:, None])
        draws = draw_hyperparameters(X.numpy(), y.numpy(), seed)
        kept = {name: values[::THINNING] for name, values in draws.items()}
        model.load_mcmc_samples(model.pyro_model.postprocess_mcmc_samples(kept))
    return _fixed(model)


def fit_by_botorch(X: Tensor, y: Tensor, seed: int) -> PaperGP:
    """The same by BoTorch alone, as its users get it; compiled code is not kept on disk."""
    with jax_for_benchmarks(), compiled_anew():
        model: PaperGP = PaperGP(X, y[:, None])
        fit_fully_bayesian_model_nuts(model, disable_progbar=True, seed=seed)
    return _fixed(model)


def _fixed(model: PaperGP) -> PaperGP:
    """Acquisition functions are climbed in x; no graph back to hyperparameters is of use."""
    model.eval().requires_grad_(False)
    return model


def draw_hyperparameters(
    X: np.ndarray, y: np.ndarray, seed: int, samples: int = SAMPLES
) -> dict[str, np.ndarray]:
    """`samples` successive draws of lengthscale, `samples x d`, noise_sd and mean, `samples`.

    Needs `jax_for_benchmarks` around it.
    """
    n, d = X.shape
    more = -n % PADDING
    X = np.concatenate([X, np.zeros((more, d))])
    y = np.concatenate([y, np.zeros(more)])
    known = np.arange(n + more) < n
    chain = _chain(samples)
    chain.run(jax.random.PRNGKey(seed), *map(jnp.asarray, (X, y, known.astype(np.float64))))
    return {name: np.asarray(values) for name, values in chain.get_samples().items()}


@functools.cache
def _chain(samples: int) -> MCMC:
    """The sampler: kept for the code it has compiled; each run starts anew from its key."""
    kernel = NUTS(observe, dense_mass=True, max_tree_depth=TREE_DEPTH)
    return MCMC(
        kernel,
        num_warmup=WARMUP,
        num_samples=samples,
        progress_bar=False,
        jit_model_args=True,
    )


def observe(X: Any, y: Any, known: Any) -> None:
    """The model for NumPyro: X `n x d`, y `n`, and which are data (1) or padding (0), `n`."""
    d = X.shape[1]
    lengthscale = numpyro.sample("lengthscale", _prior(PAPER.lengthscale, d).expand((d,)))
    noise_sd = numpyro.sample("noise_sd", _prior(PAPER.noise_sd, d))
    mean = numpyro.sample("mean", _prior(PAPER.mean, d))
    scaled = X / lengthscale
    squares = jnp.square(scaled[:, None] - scaled).sum(-1)
    noise = jnp.maximum(jnp.square(noise_sd), MIN_NOISE)
    covariance = jnp.exp(-0.5 * squares) * jnp.outer(known, known)
    covariance += jnp.diag(jnp.where(known > 0, noise, 1.0))
    numpyro.sample("y", dist.MultivariateNormal(mean * known, covariance), obs=y)


def _prior(marginal: Marginal, d: int) -> dist.Distribution:
    """The same prior as a distribution of NumPyro."""
    loc = marginal.loc + marginal.dim_power * float(np.log(d))
    return dist.LogNormal(loc, marginal.scale) if marginal.log else dist.Normal(loc, marginal.scale)
