import gpytorch
import pytest
import torch

from amortes.prior.gp import Hyperparameters, Kernel
from amortes.prior.kernels import (
    correlation,
    covariance,
    radial_curvature,
    radial_slope,
    scaled,
    square_distance,
    value_and_slope,
)
from amortes.prior.warp import warp

KERNELS: list[Kernel] = ["se", "matern52", "mixed"]


def rough(kernel: Kernel, value: float) -> torch.Tensor | None:
    return torch.tensor(value, dtype=torch.float64) if kernel == "mixed" else None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_covariance_agrees_with_gpytorch(kernel: Kernel, dtype: torch.dtype) -> None:
    rng = torch.Generator().manual_seed(0)
    X1 = torch.rand(7, 3, generator=rng, dtype=dtype)
    X2 = torch.rand(5, 3, generator=rng, dtype=dtype)
    lengthscale = torch.tensor([0.3, 0.7, 2.0], dtype=dtype)
    hyper = Hyperparameters(lengthscale, *(torch.tensor(v, dtype=dtype) for v in (1.7, 0.1, 0.0)))
    oracle = gpytorch.kernels.RBFKernel(ard_num_dims=3)
    if kernel == "matern52":
        oracle = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=3)
    oracle = oracle.to(dtype)
    oracle.lengthscale = lengthscale
    expected = 1.7 * oracle(X1, X2).to_dense()
    tolerance = 1e-5 if dtype == torch.float32 else 1e-10
    assert torch.allclose(covariance(kernel, hyper, X1, X2), expected, atol=tolerance)


def test_the_mixed_kernel_is_a_mixture_of_warped_points() -> None:
    rng = torch.Generator().manual_seed(0)
    X1 = torch.rand(2, 7, 3, generator=rng, dtype=torch.float64)
    X2 = torch.rand(2, 5, 3, generator=rng, dtype=torch.float64)
    lengthscale = 0.2 + torch.rand(2, 3, generator=rng, dtype=torch.float64)
    parameters = torch.randn(2, 2, 3, generator=rng, dtype=torch.float64)
    variance, share = torch.tensor([1.7, 0.6]).double(), torch.tensor([0.3, 1.0]).double()
    hyper = Hyperparameters(lengthscale, variance, share, share, parameters, share)
    found = covariance("mixed", hyper, X1, X2)
    for i in range(2):
        U1, U2 = warp(X1[i], parameters[i]), warp(X2[i], parameters[i])
        parts = []
        for oracle in (
            gpytorch.kernels.RBFKernel(ard_num_dims=3).double(),
            gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=3).double(),
        ):
            oracle.lengthscale = lengthscale[i]
            parts.append(oracle(U1, U2).to_dense())
        expected = variance[i] * ((1.0 - share[i]) * parts[0] + share[i] * parts[1])
        assert torch.allclose(found[i], expected, atol=1e-10)


def test_distances_are_those_of_scaled_points() -> None:
    rng = torch.Generator().manual_seed(3)
    X1, X2 = torch.rand(2, 1, 6, 4, generator=rng, dtype=torch.float64)
    lengthscale = torch.rand(3, 4, generator=rng, dtype=torch.float64) + 0.1
    one = torch.ones(3, dtype=torch.float64)
    hyper = Hyperparameters(lengthscale, one, one, one)
    V1, V2 = scaled(hyper, X1), scaled(hyper, X2)
    assert V1.shape == (3, 6, 4)
    expected = torch.cdist(X1 / lengthscale[:, None], X2 / lengthscale[:, None]).square()
    assert torch.allclose(square_distance(V1, V2), expected, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_is_finite_where_points_coincide(kernel: Kernel) -> None:
    X = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    one = torch.tensor(1.0, dtype=torch.float64)
    hyper = Hyperparameters(
        torch.ones(2, dtype=torch.float64), one, one, one, roughness=rough(kernel, 0.4)
    )
    covariance(kernel, hyper, X, X).sum().backward()  # type: ignore[no-untyped-call]
    assert X.grad is not None
    assert X.grad.isfinite().all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_radial_slopes_and_curvatures_are_derivatives(kernel: Kernel) -> None:
    r2 = torch.linspace(0.01, 9.0, 20, dtype=torch.float64, requires_grad=True)
    share = rough(kernel, 0.4)
    value, slope = value_and_slope(kernel, r2, share)
    (derivative,) = torch.autograd.grad(correlation(kernel, r2, share).sum(), r2)
    assert torch.allclose(value, correlation(kernel, r2, share), rtol=1e-14)
    assert torch.allclose(slope, -2.0 * derivative)
    other = radial_slope(kernel, r2, share)
    assert torch.allclose(other, slope, rtol=1e-14)
    (derivative,) = torch.autograd.grad(other.sum(), r2)
    assert torch.allclose(radial_curvature(kernel, r2, share), -2.0 * derivative)
