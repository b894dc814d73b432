import contextlib
import inspect
import math
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import threadpoolctl  # type: ignore[import-untyped]
import torch
from botorch.fit import fit_fully_bayesian_model_nuts
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from numpyro.diagnostics import effective_sample_size
from numpyro.infer.util import log_density
from scipy import stats

from amortes.bench.methods import paper_gp
from amortes.bench.methods.paper_gp import (
    FORGET_EVERY,
    MIN_NOISE,
    ONE_THREAD,
    PAPER,
    PaperGP,
    compiled_anew,
    draw_hyperparameters,
    fit_by_botorch,
    forget_now_and_then,
    jax_for_benchmarks,
    observe,
)
from amortes.oracles.smc import hyper_posterior
from amortes.random import generator
from tests.bench.methods.ensemble import made_up


def blas_threads() -> set[int]:
    found = threadpoolctl.threadpool_info()
    return {library["num_threads"] for library in found if library["user_api"] == "blas"}


def test_float64_and_one_thread_of_blas_inside_only() -> None:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        with jax_for_benchmarks():
            assert jnp.ones(2).dtype == jnp.float64
            assert blas_threads() == {1}
        assert jnp.ones(2).dtype == jnp.float32
        assert blas_threads() == {2}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ONE_THREAD),
        ("--xla_a=1", f"--xla_a=1 {ONE_THREAD}"),
        ("--xla_cpu_multi_thread_eigen=true", "--xla_cpu_multi_thread_eigen=true"),
    ],
)
def test_one_thread_of_xla_unless_the_user_has_said_otherwise(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", before)
    paper_gp._configure.__wrapped__()  # as the first call does
    assert os.environ["XLA_FLAGS"] == after


def test_compiled_code_is_kept() -> None:
    with jax_for_benchmarks():
        assert jax.config.jax_compilation_cache_dir is not None


@pytest.mark.parametrize("anew", [False, True])
def test_code_compiled_anew_is_neither_read_nor_written(anew: bool, tmp_path: Path) -> None:
    """A function that nobody has compiled yet leaves a file, unless it is compiled anew."""
    with jax_for_benchmarks():
        before = jax.config.jax_compilation_cache_dir
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        reset_cache()
        try:
            with compiled_anew() if anew else contextlib.nullcontext():
                jax.jit(lambda x: jnp.sin(x) + 17.0)(jnp.ones(3))
            assert any(tmp_path.iterdir()) != anew
        finally:
            jax.config.update("jax_compilation_cache_dir", before)
            reset_cache()
    assert jax.config.jax_enable_compilation_cache


def test_compiled_code_leaves_memory_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[None] = []
    monkeypatch.setattr(jax, "clear_caches", lambda: forgotten.append(None))
    for _ in range(3 * FORGET_EVERY):
        forget_now_and_then()
    assert len(forgotten) == 3


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, d])
    X = rng.random((n, d))
    y = np.sin(4.0 * X).sum(-1) + 0.2 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std(ddof=1)


@pytest.mark.parametrize("noise_sd", [0.1, 1e-4])
def test_the_density_is_the_papers_and_padding_adds_a_constant(noise_sd: float) -> None:
    (X, y), d, more = data(6, 2), 2, 3
    lengthscale, mean = np.array([0.4, 0.9]), 0.3
    K = np.exp(-0.5 * (((X[:, None] - X) / lengthscale) ** 2).sum(-1))
    K += max(noise_sd**2, MIN_NOISE) * np.eye(6)
    loc = -0.75 + 0.5 * math.log(d)
    expected = (
        stats.multivariate_normal(np.full(6, mean), K).logpdf(y)
        + stats.lognorm(0.75, scale=math.exp(loc)).logpdf(lengthscale).sum()
        + stats.lognorm(1.0, scale=math.exp(-4.0)).logpdf(noise_sd)
        + stats.norm(0.0, 0.5).logpdf(mean)
    )
    params = {"lengthscale": lengthscale, "noise_sd": noise_sd, "mean": mean}
    padded = np.concatenate([X, np.zeros((more, d))]), np.concatenate([y, np.zeros(more)])
    known = np.array([1.0] * 6 + [0.0] * more)
    with jax_for_benchmarks():
        plain, _ = log_density(observe, (X, y, np.ones(6)), {}, params)
        longer, _ = log_density(observe, (*padded, known), {}, params)
    assert float(plain) == pytest.approx(float(expected), abs=1e-7)
    constant = -0.5 * more * math.log(2 * math.pi)
    assert float(longer - plain) == pytest.approx(constant, abs=1e-9)


def test_samples_arrive_in_the_model_unclamped() -> None:
    model, members = made_up()
    Xq = torch.rand(5, 1, 2, generator=generator(3), dtype=torch.float64)
    noisy = model.posterior(Xq, observation_noise=True)
    for j, member in enumerate(members):
        expected = member.posterior(Xq, observation_noise=True)
        torch.testing.assert_close(noisy.mean[:, j], expected.mean)
        torch.testing.assert_close(noisy.variance[:, j], expected.variance)
    assert float(model.likelihood.noise.min()) == pytest.approx(5e-6)


def test_botorch_fits_it_with_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its defaults are the numbers of steps, samples and branches that `fit` takes."""
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(fit_fully_bayesian_model_nuts).parameters.items()
    }
    assert [defaults[name] for name in ("warmup_steps", "num_samples", "thinning")] == [
        paper_gp.WARMUP,
        paper_gp.SAMPLES,
        paper_gp.THINNING,
    ]
    assert defaults["max_tree_depth"] == paper_gp.TREE_DEPTH
    given: list[tuple[torch.Size, int, bool]] = []

    def sample(model: PaperGP, *, disable_progbar: bool, seed: int) -> None:
        kept = jax.config.jax_enable_compilation_cache
        given.append((model.train_inputs[0].shape, seed, kept))

    monkeypatch.setattr(paper_gp, "fit_fully_bayesian_model_nuts", sample)
    X, y = (torch.from_numpy(array) for array in data(5, 2))
    model = fit_by_botorch(X, y, seed=3)
    assert [(tuple(shape), seed, kept) for shape, seed, kept in given] == [((5, 2), 3, False)]
    assert not any(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.slow
def test_nuts_agrees_with_sequential_monte_carlo() -> None:
    X, y = data(8, 2)
    with jax_for_benchmarks():
        draws = draw_hyperparameters(X, y, seed=0, samples=4096)
    check_agreement(X, y, draws)


@pytest.mark.slow
def test_nuts_of_botorch_agrees_too() -> None:
    X, y = data(8, 2)
    with jax_for_benchmarks():
        model = PaperGP(torch.from_numpy(X), torch.from_numpy(y)[:, None])
        fit_fully_bayesian_model_nuts(
            model, num_samples=4096, thinning=1, disable_progbar=True, seed=1
        )
    draws = {
        "lengthscale": model.covar_module.lengthscale.squeeze(1).detach().numpy(),
        "noise_sd": model.likelihood.noise.sqrt().squeeze(-1).detach().numpy(),
        "mean": model.mean_module.constant.detach().numpy(),
    }
    check_agreement(X, y, draws)


def check_agreement(X: np.ndarray, y: np.ndarray, draws: dict[str, np.ndarray]) -> None:
    """Means and standard deviations of (log) hyperparameters match within Monte Carlo error."""
    hyper = hyper_posterior(
        PAPER, torch.from_numpy(X)[None], torch.from_numpy(y)[None], generator(0)
    ).hyper
    pairs = {
        "l1": (np.log(draws["lengthscale"][:, 0]), hyper.lengthscale[0, :, 0].log()),
        "l2": (np.log(draws["lengthscale"][:, 1]), hyper.lengthscale[0, :, 1].log()),
        "noise": (np.log(draws["noise_sd"]), hyper.noise_sd[0].log()),
        "mean": (draws["mean"], hyper.mean[0]),
    }
    for name, (nuts, reference) in pairs.items():
        smc = reference.numpy()
        # Particles of one chain are correlated: a quarter of them counts.
        error = math.sqrt(nuts.var() / float(effective_sample_size(nuts[None])) + smc.var() / 1024)
        assert abs(nuts.mean() - smc.mean()) < 4 * error, name
        assert abs(nuts.std() / smc.std() - 1) < 0.15, name
