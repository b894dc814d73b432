import contextlib
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import threadpoolctl  # type: ignore[import-untyped]
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from amortes.bench.methods import jax_setup
from amortes.bench.methods.jax_setup import (
    FORGET_EVERY,
    ONE_THREAD,
    compiled_anew,
    forget_now_and_then,
    jax_for_benchmarks,
)


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
    jax_setup._configure.__wrapped__()  # as the first call does
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
