import gpytorch
import pytest
import torch

from amortes.prior.gp import Hyperparameters, Kernel
from amortes.prior.kernels import correlation, covariance, value_and_slope


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


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_gradient_is_finite_where_points_coincide(kernel: Kernel) -> None:
    X = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    one = torch.tensor(1.0, dtype=torch.float64)
    hyper = Hyperparameters(torch.ones(2, dtype=torch.float64), one, one, one)
    covariance(kernel, hyper, X, X).sum().backward()  # type: ignore[no-untyped-call]
    assert X.grad is not None
    assert X.grad.isfinite().all()


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_the_radial_slope_is_a_derivative(kernel: Kernel) -> None:
    r2 = torch.linspace(0.01, 9.0, 20, dtype=torch.float64, requires_grad=True)
    value, slope = value_and_slope(kernel, r2)
    (derivative,) = torch.autograd.grad(correlation(kernel, r2).sum(), r2)
    assert torch.equal(value, correlation(kernel, r2))
    assert torch.allclose(slope, -2.0 * derivative)
