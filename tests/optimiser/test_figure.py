import io

import numpy as np
import pytest
import torch

from amortes.acquisition import Fitted
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Int, Optimizer, Ordinal, Space, Trial
from amortes.optimiser.figure import draw_run

SPACE = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "n": Int(1, 1000),
        "c": Categorical(["a", [1], None]),
        "o": Ordinal([1, 2]),
        "x": Float(0, 1),
        "fixed": 1,
    }
)


def test_history_of_results_and_failures() -> None:
    trials = [
        Trial(0, {}, "done", 3.0),
        Trial(1, {}, "failed"),
        Trial(2, {}, "done", 1.0),
        Trial(3, {}, "pending"),
        Trial(4, {}, "done", 2.0),
    ]
    for maximise, best in ((False, [3.0, 1.0, 1.0]), (True, [3.0, 3.0, 3.0])):
        (ax,) = draw_run(trials, maximise=maximise, space=SPACE).axes
        assert ax.lines[0].get_ydata() == pytest.approx(best)
        assert ax.get_title() == "3 results, 1 failed"


def test_dots_are_results_as_the_model_takes_them(network: KernelNetwork) -> None:
    optimizer = Optimizer({"x": Float(0, 1)}, network=network)
    for i in range(12):
        optimizer.tell({"x": i / 11}, 1e6 if i % 4 == 0 else (i / 11) ** 2)
    history, along_x = optimizer.plot().axes
    dots = np.asarray(along_x.collections[-1].get_offsets())
    assert dots[1::4, 1] == pytest.approx([(i / 11) ** 2 for i in (1, 5, 9)])
    assert (dots[::4, 1] > dots[9, 1]).all()
    assert dots[:, 1].max() < 10.0
    assert np.asarray(history.collections[0].get_offsets())[0, 1] == 1e6


def test_no_trials_is_an_empty_figure() -> None:
    (ax,) = draw_run([], maximise=True, space=SPACE).axes
    assert ax.get_title() == "0 results"


def test_many_choices_and_dollar_signs(network: KernelNetwork) -> None:
    space = Space(
        {"$x_$": Categorical([rf"^\d+${i}$" for i in range(90)]), "o": Ordinal(range(200))}
    )
    U = torch.rand(4, space.d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    configs = [space.decode(u) for u in U]
    trials = [Trial(i, config, "done", float(i)) for i, config in enumerate(configs)]
    fitted = Fitted(network, space.encode_all(configs), torch.arange(4).double())
    figure = draw_run(trials, maximise=True, space=space, fitted=fitted, recommended=configs[0])
    assert len(figure.axes[1].get_xticklabels()) == 45
    figure.savefig(io.BytesIO(), format="png")


def test_a_slice_per_parameter(network: KernelNetwork) -> None:
    U = torch.rand(6, SPACE.d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    configs = [SPACE.decode(u) for u in U]
    trials = [Trial(i, config, "done", float(i)) for i, config in enumerate(configs)]
    fitted = Fitted(network, SPACE.encode_all(configs), torch.arange(6).double(), maximise=False)
    figure = draw_run(trials, maximise=False, space=SPACE, fitted=fitted, recommended=configs[0])
    assert [ax.get_xlabel() for ax in figure.axes] == ["trial", "lr", "n", "c", "o", "x"]
    lr = figure.axes[1]
    assert lr.get_xscale() == "log"
    # The line is the posterior mean along lr through the config.
    x, y = (np.asarray(data)[30] for data in lr.lines[0].get_data())
    expected = fitted.predict(SPACE.encode({**configs[0], "lr": float(x)})[None]).mean
    assert y == pytest.approx(float(expected))
    assert [t.get_text() for t in figure.axes[3].get_xticklabels()] == ["a", "[1]", "None"]
    figure.savefig(io.BytesIO(), format="png")
