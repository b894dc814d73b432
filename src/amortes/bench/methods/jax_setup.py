"""JAX as the benchmarks need it: one thread, float64, and compiled code kept between processes.

Compiling NUTS takes ten seconds per shape of the data, running it about one; so what has been
compiled is kept in `~/.cache/amortes/jax` (or `$AMORTES_CACHE/jax`), unless the user has configured
another compilation cache. In memory it is forgotten now and then: each number of observations
compiles anew, and every piece maps memory, of which an operating system allows 65,000 or so.

Needs the extra `bench`.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Iterator

import jax
import threadpoolctl  # type: ignore[import-untyped]
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from amortes.files import cache_folder

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
FORGET_EVERY = 20  # fits after which compiled code leaves memory; a process died after about 120

_fits = itertools.count(1)


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
