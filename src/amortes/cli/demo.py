"""`amortes demo`: a quick comparison with Optuna and random search."""

from pathlib import Path

import click

from amortes.cli.console import POSITIVE, counting, figure_option, option, show_rows, write_figure


@click.command()
@option("--evaluations", type=click.IntRange(min=8), default=40, help="Evaluations per run.")
@option("--seeds", type=POSITIVE, default=3,
        help="Runs of each method, each with its own initial points and noise.")  # fmt: skip
@figure_option("out/demo.png")
def demo(evaluations: int, seeds: int, output: Path) -> None:
    """Compare amortes with Optuna's TPE and random search on two problems, and plot the result.

    One problem tunes six parameters of a gradient-boosting model; the other is the function
    Hartmann-6 with noise of standard deviation 0.316. All methods start from the same points and
    see the same noise. A few runs give an impression, not a verdict; for that, use `amortes bench`.

    \b
    Examples:
      amortes demo
      amortes demo --seeds 5 --evaluations 60 -o out/five.svg
    """
    from amortes.bench.demo import METHODS, SCENES, average, draw, run_scene

    results = []
    with counting("runs", "demo", len(SCENES) * len(METHODS) * seeds) as update:
        for scene in SCENES:
            results.append((scene, run_scene(scene, evaluations, seeds, update)))
    marks = (max(evaluations // 2, 6), evaluations)
    for scene, curves in results:
        rows = []
        for method, runs in curves.items():
            means = [average(scene, [run[n - evaluations - 1] for run in runs]) for n in marks]
            labels = [f"{scene.label}, after {n}" for n in marks]
            rows.append({"method": METHODS[method], **dict(zip(labels, means, strict=True))})
        show_rows(rows, as_json=False, title=scene.title)
    write_figure(draw(results, evaluations), output)
