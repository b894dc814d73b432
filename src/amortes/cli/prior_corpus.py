"""`amortes prior show`, and `generate` and `verify`: functions of a prior, drawn and stored."""

import dataclasses
import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from amortes.cli.console import (
    ERR,
    EXIT_FAILED_CHECK,
    FOLDER,
    NATURAL,
    OUT,
    POSITIVE,
    counting,
    figure_option,
    json_option,
    option,
    parse_ranges,
    show_rows,
    write_figure,
)
from amortes.cli.sweep_options import engine_options


@click.command()
@option(
    "--prior", "name", default="real", help="Name of the prior: paper, paper-1d, robust or real."
)
@option("--seed", default=0, type=NATURAL, help="Which functions to draw.")
@option("--context", default=20, type=click.IntRange(1, 200),
        help="Points of the simulated optimisation run.")  # fmt: skip
@figure_option("out/prior.png")
def show(name: str, seed: int, context: int, output: Path) -> None:
    """Draw functions from a prior, with their maxima, in one and two dimensions.

    Each comes with a simulated optimisation run (a trace), which is what a network is trained on.

    \b
    Example:
      amortes prior show --prior paper --seed 7 --output out/paper.svg
    """
    from amortes.prior.gp import named_prior
    from amortes.prior.prior_figure import draw_prior

    write_figure(draw_prior(named_prior(name), seed=seed, context=context), output)


if TYPE_CHECKING:
    from amortes.corpora.plan import CorpusConfig
    from amortes.engines import Engine


@click.command()
@click.argument("folder", type=FOLDER)
@option("--paths", "num_paths", type=POSITIVE, help="Number of functions, over all dimensions.")
@option("--prior", show_default="paper", help="Name of the prior.")
@option("--dims", callback=parse_ranges, show_default="all of the prior",
        help="Numbers of dimensions, such as 1-6 or 2,4.")  # fmt: skip
@option("--seed", type=NATURAL, show_default="0", help="Which functions.")
@option("--shard-size", type=POSITIVE, show_default="4096", help="Functions per file.")
@option("--only-shards", callback=parse_ranges, help="Make only these files again, by number.")
@engine_options
@json_option
def generate(
    folder: Path,
    prior: str | None,
    only_shards: tuple[int, ...],
    engine: "Engine",
    as_json: bool,
    **chosen: Any,
) -> None:
    """Write functions (sample paths) and their maxima to FOLDER, for training.

    You can stop it at any time, or even kill it. The same command continues and needs no options
    then. The result does not depend on interruptions, workers or the engine.

    \b
    Examples:
      amortes prior generate corpora/paper --paths 1000000
      amortes prior generate corpora/paper
      amortes prior generate corpora/paper --only-shards 3,7
    """
    from amortes.corpora import generate
    from amortes.prior.gp import named_prior

    chosen["prior"] = named_prior(prior) if prior else None
    given = {name: value for name, value in chosen.items() if value not in (None, ())}
    config = _config(folder, given, only_shards)
    with counting("paths", "generate", config.num_paths) as update:
        begin, kept = time.perf_counter(), None

        def report(done: int, total: int) -> None:
            nonlocal kept
            kept = done if kept is None else kept
            rate = (done - kept) / (time.perf_counter() - begin)
            update(completed=done, total=total, note=f"{rate:.0f}/s")

        summary = generate.generate(
            folder, config, engine=engine, only=only_shards or None, progress=report
        )
    row = {
        "paths": summary.num_paths,
        "made": summary.made_paths,
        "replaced_shards": summary.replaced_shards,
        "seconds": round(summary.seconds, 1),
        "paths_per_s": round(summary.made_paths / summary.seconds),
        "MB": summary.num_bytes / 1e6,
        "bytes_per_path": round(summary.num_bytes / summary.num_paths),
    }
    show_rows([row], as_json=as_json, title=str(folder))


def _config(folder: Path, chosen: dict[str, Any], only_shards: tuple[int, ...]) -> "CorpusConfig":
    """The configuration asked for; what is left open comes from the corpus that is there."""
    from amortes.corpora.plan import CONFIG_NAME, CorpusConfig, read_config
    from amortes.prior.gp import named_prior

    if only_shards or (folder / CONFIG_NAME).exists():
        stored = read_config(folder)
        if chosen.get("dims", stored.dims) != stored.dims:
            chosen["maximisers"] = ()
        return dataclasses.replace(stored, **chosen)
    if "num_paths" not in chosen:
        raise click.UsageError(f"{folder} holds no corpus yet: say how large it is with --paths.")
    return CorpusConfig(**({"prior": named_prior("paper")} | chosen))


@click.command()
@click.argument("folder", type=FOLDER)
@option("--sample", type=NATURAL, default=200, help="Functions to rebuild and search again.")
@option(
    "--budget",
    type=POSITIVE,
    default=30,
    help="Size of that search, as a multiple of the usual one.",
)
@json_option
def verify(folder: Path, sample: int, budget: int, as_json: bool) -> None:
    """Check every file that `amortes prior generate` wrote to FOLDER, and a sample of its maxima.

    For each dimension, the command prints the share of sampled maxima that a much larger search
    does not beat by more than 1e-5. The exit code is 1 if a file is missing or damaged.

    \b
    Examples:
      amortes prior verify corpora/paper
      amortes prior verify corpora/paper --sample 1000
    """
    from amortes.corpora.verify import verify

    with counting("", "shards") as update:
        result = verify(
            folder,
            sample=sample,
            budget=budget,
            progress=lambda what, done, total: update(
                description=what, completed=done, total=total
            ),
        )
    again = ",".join(map(str, sorted(result.damaged)))
    repair = shlex.join(["amortes", "prior", "generate", str(folder), "--only-shards", again])
    if as_json:
        value = {
            "shards": result.num_shards,
            "damaged": result.damaged,
            "repair": repair if result.damaged else None,
            "dims": result.dims,
        }
        click.echo(json.dumps(value, indent=2))
    else:
        show_rows(result.dims, as_json=False, title=str(folder))
        whole = result.num_shards - len(result.damaged)
        OUT.print(f"{whole} of {result.num_shards} shards are whole.")
    if result.damaged:
        for message in result.damaged.values():
            ERR.print(f"[red]Failed:[/] {escape(message)}", soft_wrap=True)
        ERR.print(f"Make them again: {escape(repair)}", soft_wrap=True)
        raise click.exceptions.Exit(EXIT_FAILED_CHECK)
