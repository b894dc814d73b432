import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from amortes.cli import app
from amortes.errors import FileError
from amortes.prior.gp import named_prior
from amortes.training.learning_curves import draw_curves
from amortes.training.recipes import recipe
from amortes.training.run import TrainingRun


def start(folder: Path) -> TrainingRun:
    return TrainingRun.start(folder, recipe("kernel", "base", named_prior("paper")))


def test_losses_and_validations_are_drawn(tmp_path: Path) -> None:
    run = start(tmp_path / "run")
    for step in range(1, 31):
        run.log({"step": step, "loss": 1.0 / step})
    for step in (15, 30):
        run.log({"step": step, "validation": {"loss": 0.5, "excess_x": 1.0 / step}})
    (ax,) = draw_curves([run]).axes
    by_label = {line.get_label(): np.asarray(line.get_xydata()).tolist() for line in ax.get_lines()}
    assert by_label["excess x, validation"] == [[15, 1 / 15], [30, 1 / 30]]
    assert len(by_label["loss, training"]) == 21
    assert by_label["loss, training"][0][1] == pytest.approx(sum(1 / s for s in range(1, 11)) / 10)


def test_command(tmp_path: Path) -> None:
    start(tmp_path / "run").log({"step": 1, "loss": 1.0})
    out = tmp_path / "curves.svg"
    result = CliRunner().invoke(app, ["train", "curves", str(tmp_path / "run"), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert "<svg" in out.read_text()


def test_a_line_that_is_cut_short_is_left_out(tmp_path: Path) -> None:
    run = start(tmp_path / "run")
    run.log({"step": 1, "loss": 1.0})
    with run.metrics.open("a") as file:
        file.write('{"step": 2, "lo')
    (ax,) = draw_curves([run]).axes
    assert np.asarray(ax.get_lines()[0].get_xydata()).tolist() == [[1, 1]]


def test_a_run_without_metrics(tmp_path: Path) -> None:
    run = start(tmp_path / "run")
    with pytest.raises(FileError, match="no metrics"):
        draw_curves([run])
    run.metrics.write_text(json.dumps({"step": 0}) + "\n")
    with pytest.raises(FileError, match="no metrics"):
        draw_curves([run])
