import pytest
import torch

from amortes.errors import ConfigError
from amortes.nets.distributions.borders import asinh_borders, check_borders, fit_borders


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blend_runs_from_equal_mass_to_equal_width(dtype: torch.dtype) -> None:
    samples = torch.randn(20_000, generator=torch.Generator().manual_seed(0), dtype=dtype)
    mass, both, width = (fit_borders(samples, 50, blend) for blend in (0.0, 0.5, 1.0))
    assert {t.dtype for t in (mass, both, width)} == {dtype}
    inside = torch.histogram(samples, mass).hist
    torch.testing.assert_close(inside, torch.full_like(inside, 20_000 / 51), rtol=0.02, atol=1.0)
    torch.testing.assert_close(width.diff(), torch.full_like(inside, width.diff()[0].item()))
    torch.testing.assert_close(both, 0.5 * (mass + width))
    # The point of the blend: the last bars are finer than with equal mass.
    assert both.diff()[-1] < 0.65 * mass.diff()[-1]


def test_quantiles_match_torch() -> None:
    samples = torch.rand(7, 13, generator=torch.Generator().manual_seed(0)).double()
    levels = (torch.arange(6).double() + 0.5) / 6
    torch.testing.assert_close(fit_borders(samples, 5, 0.0), samples.flatten().quantile(levels))


def test_tied_samples_need_a_blend() -> None:
    samples = torch.tensor([0.0] * 90 + [1.0] * 10)
    with pytest.raises(ConfigError, match="strictly increasing"):
        fit_borders(samples, 10, 0.0)
    assert (fit_borders(samples, 10, 0.1).diff() > 0).all()


def test_asinh_borders_are_symmetric_and_even_in_asinh() -> None:
    borders = asinh_borders(40, 5.0, 0.01)
    assert torch.equal(borders, -borders.flip(0))
    assert borders[-1].item() == pytest.approx(5.0)
    steps = torch.asinh(borders / 0.01).diff()
    torch.testing.assert_close(steps, torch.full_like(steps, steps.mean().item()))


@pytest.mark.parametrize(
    ("borders", "message"),
    [
        (torch.tensor([0.0, 1.0, 2.0]), "at least 4"),
        (torch.zeros(2, 5), "at least 4"),
        (torch.tensor([0.0, 1.0, torch.inf, 3.0]), "finite"),
        (torch.tensor([0.0, 1.0, 0.5, 3.0]), r"borders\[1\] = 1 is followed by 0.5"),
    ],
)
def test_bad_borders(borders: torch.Tensor, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_borders(borders)


def test_bad_arguments() -> None:
    with pytest.raises(ConfigError, match="blend"):
        fit_borders(torch.randn(10, generator=torch.Generator()), 5, 1.5)
    with pytest.raises(ConfigError, match="finite"):
        fit_borders(torch.tensor([1.0, torch.nan]), 5)
    with pytest.raises(ConfigError, match="finite"):
        fit_borders(torch.tensor([1.0]), 5)
    with pytest.raises(ConfigError, match="positive"):
        asinh_borders(10, 1.0, 0.0)
