"""`amortes prior bench` and `amortes prior ensemble`: the searches for the maxima of paths."""

import json
from pathlib import Path
from typing import Any

import click
import torch

from amortes.bench.maximisers import comparison
from amortes.bench.maximisers.ensemble import (
    DEFAULT_ENSEMBLE,
    FOLDS,
    MAX_SECONDS,
    TARGET,
    Ensemble,
    run_candidate,
    select,
)
from amortes.bench.maximisers.first_order import random_candidates
from amortes.cli.console import (
    ERR,
    EXIT_FAILED_CHECK,
    FILE,
    FOLDER,
    NATURAL,
    OUT,
    PATH,
    POSITIVE,
    counting,
    json_option,
    option,
    parse_sizes,
    show_rows,
)
from amortes.prior.gp import PRIORS, named_prior
from amortes.random import derive_seeds

BENCH_DIMS = (1, 2, 4, 6, 16)


@click.command()
@option("--dims", callback=parse_sizes, metavar="D,D,...",
        help="Dimensions.  [default: 1,2,4,6,16, as far as the prior goes]")  # fmt: skip
@option("--paths", "num_paths", type=POSITIVE, default=2000, help="Functions per dimension.")
@option("--prior", type=click.Choice(list(PRIORS)), default="robust",
        help="Prior to draw functions from.")  # fmt: skip
@option("--ensemble", "ensemble_file", type=PATH,
        help="File from `amortes prior ensemble`.  [default: a built-in one]")  # fmt: skip
@option("--ensemble-paths", type=NATURAL, default=20,
        help="Functions for the ensemble, which is slow; 0 leaves it out.")  # fmt: skip
@option("--reference-budget", type=POSITIVE, default=30,
        help="Size of the reference search, as a multiple of a Newton search.")  # fmt: skip
@option("--seed", type=NATURAL, default=0, help="Which functions.")
@option("--check", is_flag=True, help="Exit with code 1 if Newton misses its targets.")
@json_option
def bench(
    dims: tuple[int, ...],
    num_paths: int,
    prior: str,
    ensemble_file: Path | None,
    ensemble_paths: int,
    reference_budget: int,
    seed: int,
    check: bool,
    as_json: bool,
) -> None:
    """Measure how fast and how precisely the maxima of functions are found, on one core.

    amortes uses Newton's method; the paper used an ensemble of first-order optimisers. A function
    (path) counts as solved if the value found is within 1e-5 of the best one known, which comes
    from a Newton search --reference-budget times as large (50 to 200 ms per path).

    \b
    Examples:
      amortes prior bench                              all dimensions, a quarter of an hour
      amortes prior bench --paths 200 --dims 2,6       a quick look
      amortes prior bench --check --ensemble-paths 0   Newton alone, against its targets
      amortes prior bench --ensemble mine.json --ensemble-paths 200

    Targets of --check: at most 4 ms per path and 99 % solved for d <= 6, 12 ms and 95 % above.
    """
    law = named_prior(prior)
    dims = dims or tuple(d for d in BENCH_DIMS if law.min_dim <= d <= law.max_dim)
    for d in dims:
        law.check_dim(d)
    ensemble = Ensemble.load(ensemble_file) if ensemble_file else DEFAULT_ENSEMBLE
    rows: list[comparison.Row] = []
    missed: list[str] = []
    with counting("paths", "reference", num_paths * len(dims)) as update:
        for d in dims:
            update(note=f"d={d}")
            paths = comparison.draw_paths(law, d, num_paths, seed)
            reference = []
            for values in comparison.reference_values(paths, reference_budget):
                reference.append(values)
                update(advance=len(values))
            update(note=f"d={d}: comparing")
            known = torch.cat(reference)
            compared = comparison.compare(
                paths, known, ensemble=ensemble, ensemble_paths=ensemble_paths, seed=seed
            )
            rows += compared
            missed += comparison.missed_targets(compared[0])  # Newton on most paths
    show_rows(rows, as_json=as_json, title=f"prior {prior}")
    if check and missed:
        ERR.print("\n".join(f"[red]Newton misses its target:[/] {line}" for line in missed))
        raise click.exceptions.Exit(EXIT_FAILED_CHECK)


@click.command()
@option("--paths", "num_paths", type=click.IntRange(min=FOLDS), default=200,
        help="Functions to maximise.")  # fmt: skip
@option("--candidates", type=POSITIVE, default=60, help="Random optimisers to choose from.")
@option("--dim", "d", type=POSITIVE, default=4, help="Number of dimensions.")
@option("--prior", type=click.Choice(list(PRIORS)), default="paper",
        help="Prior to draw functions from.")  # fmt: skip
@option("--seed", type=NATURAL, default=0, help="Which functions and candidates.")
@option("--target", type=click.FloatRange(min=0), default=TARGET,
        help="Regret at which an ensemble is good enough.")  # fmt: skip
@option("--max-seconds", type=click.FloatRange(min=0, min_open=True), default=MAX_SECONDS,
        help="Slowest candidate allowed, per path.")  # fmt: skip
@option("--output", type=FILE, default=Path("ensemble.json"), help="File to write.")
@option("--work", type=FOLDER,
        help="Folder for finished candidates, to continue after an interruption.")  # fmt: skip
@json_option
def ensemble(
    num_paths: int,
    candidates: int,
    d: int,
    prior: str,
    seed: int,
    output: Path,
    work: Path | None,
    as_json: bool,
    **limits: Any,
) -> None:
    """Build an ensemble of first-order optimisers, as the paper used to find maxima.

    Random candidates from the paper's grid maximise all functions (paths). On each of five folds,
    candidates are added greedily until the mean regret against the best of all candidates is at
    most --target; then the ensembles of the folds are merged. Candidates slower than --max-seconds
    per path are dropped as soon as that is clear.

    \b
    Examples:
      amortes prior ensemble --paths 20 --candidates 20       a minute on one core
      amortes prior ensemble --dim 6 --work runs/ensemble     can be interrupted and started again
      amortes prior ensemble --paths 1000 --candidates 1000   the paper's size: a day and a half
      amortes prior bench --ensemble ensemble.json            compare the result with Newton
    """
    settings = {
        "prior": prior,
        "dim": d,
        "paths": num_paths,
        "candidates": candidates,
        "seed": seed,
        **limits,
    }
    max_seconds = limits["max_seconds"]
    paths = comparison.draw_paths(named_prior(prior), d, num_paths, seed)
    configs = random_candidates(candidates, seed)
    seeds = derive_seeds(seed, d, 2, count=candidates)
    runs = []
    dropped = 0
    with counting("candidates", "maximising", candidates) as update:
        for config, own_seed in zip(configs, seeds, strict=True):
            run = run_candidate(
                paths, config, seed=int(own_seed), max_seconds=max_seconds, work=work
            )
            runs.append(run)
            dropped += run.mean_seconds > max_seconds
            update(advance=1, note=f"({dropped} too slow)")
    ensemble, about = select(runs, num_paths, seed=seed, **limits)
    built = settings | about
    ensemble.save(output, built=built)
    members = [vars(member) for member in ensemble.members]
    if as_json:
        click.echo(json.dumps({"members": members, "built": built}, indent=2))
        return
    show_rows(
        [
            {
                "member": " ".join(f"{k}={v}" for k, v in member.items()),
                "ms_per_path": ms,
            }
            for member, ms in zip(members, about["member_ms_per_path"], strict=True)
        ],
        as_json=False,
        title=f"Ensemble of {len(members)} for d={d}, prior {prior}",
    )
    for line in (
        f"Candidates within {max_seconds:g} s per path: {about['eligible']} of {candidates}.",
        f"The ensemble takes {about['ms_per_path']:.1f} ms per path and core.",
        f"Mean regret {about['held_out_regret']:.1e} on held-out paths ({FOLDS} folds), "
        f"{about['regret']:.1e} on all paths after merging.",
        f"Written to {output}.",
    ):
        OUT.print(line, soft_wrap=True, highlight=False)
