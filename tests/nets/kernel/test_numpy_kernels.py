import numpy as np
import pytest
import torch

from amortes.nets.kernel import numpy_kernels
from amortes.nets.kernel.numpy_kernels import Array, PullBack, differentiable
from amortes.prior import kernels
from amortes.prior.gp import KERNELS, PRIORS, Hyperparameters, Kernel
from amortes.prior.warp import warp
from amortes.random import generator


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_those_of_the_prior(kernel: Kernel) -> None:
    V1, V2 = (torch.rand(3, n, 2, generator=generator(n), dtype=torch.float64) for n in (4, 5))
    rough = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)[:, None, None]
    r2 = kernels.square_distance(V1, V2)
    np.testing.assert_allclose(
        numpy_kernels.square_distance(V1.numpy(), V2.numpy()), r2, atol=1e-14
    )
    value, slope, by_roughness = numpy_kernels.value_and_slopes(kernel, r2.numpy(), rough.numpy())
    np.testing.assert_allclose(value, kernels.correlation(kernel, r2, rough))
    np.testing.assert_allclose(slope, kernels.radial_slope(kernel, r2, rough))
    curvature = numpy_kernels.radial_curvature(kernel, r2.numpy(), rough.numpy())
    np.testing.assert_allclose(curvature, kernels.radial_curvature(kernel, r2, rough))
    np.testing.assert_allclose(
        numpy_kernels.correlation(kernel, r2.clone().numpy(), rough.numpy()), value, atol=1e-15
    )
    assert (by_roughness is None) == (kernel != "mixed")
    if by_roughness is not None:
        change = kernels.correlation("matern52", r2) - kernels.correlation("se", r2)
        np.testing.assert_allclose(by_roughness, change, atol=1e-15)


def test_warps_are_those_of_the_prior() -> None:
    parameters = torch.randn(3, 2, 2, generator=generator(0), dtype=torch.float64).requires_grad_()
    X = torch.rand(3, 6, 2, generator=generator(1), dtype=torch.float64)
    X[:, 0], X[:, 1] = 0.0, 1.0
    X.requires_grad_()
    at, L = X.detach().numpy(), numpy_kernels.log_odds(X.detach().numpy())
    ours, U = numpy_kernels.Warp(parameters.detach().numpy()), warp(X, parameters)
    np.testing.assert_allclose(ours.values(L), U.detach(), atol=1e-14)
    values, slopes = ours.values_and_slopes(at)
    (by_X,) = torch.autograd.grad(U.sum(), X, retain_graph=True)
    np.testing.assert_allclose(values, U.detach(), atol=1e-14)
    np.testing.assert_allclose(slopes, by_X, rtol=1e-9, atol=1e-12)
    values, by_shape, by_shift = ours.parameter_slopes(L)
    np.testing.assert_allclose(values, U.detach(), atol=1e-14)
    for i in range(X.shape[1]):
        (by_parameters,) = torch.autograd.grad(U[:, i].sum(), parameters, retain_graph=True)
        found = np.stack([by_shape[:, i], by_shift[:, i]], axis=-2)
        np.testing.assert_allclose(found, by_parameters, atol=1e-11)


@pytest.mark.parametrize("warped", [False, True])
def test_scaled_coordinates_are_those_of_the_prior(warped: bool) -> None:
    lengthscale = torch.rand(3, 4, 2, generator=generator(0), dtype=torch.float64) + 0.1
    parameters = torch.randn(3, 4, 2, 2, generator=generator(1), dtype=torch.float64)
    one = torch.ones(3, 4, dtype=torch.float64)
    hyper = Hyperparameters(lengthscale, one, one, one, warp=parameters if warped else None)
    X = torch.rand(3, 5, 2, generator=generator(2), dtype=torch.float64).requires_grad_()
    expected = kernels.scaled(hyper, X[:, None])
    scaling, at = numpy_kernels.Scaling(hyper), X.detach().numpy()
    np.testing.assert_allclose(scaling.values(at), expected.detach(), atol=1e-12)
    values, slopes = scaling.values_and_slopes(at)
    np.testing.assert_allclose(values, expected.detach(), atol=1e-12)
    (true,) = torch.autograd.grad(expected.sum(), X)
    np.testing.assert_allclose((np.zeros_like(values) + slopes).sum(1), true)


def test_functions_in_numpy_are_differentiable() -> None:
    def function(X: Array) -> tuple[tuple[Array, ...], PullBack]:
        return (np.sin(X), X**3), lambda by_sine, by_cube: by_sine * np.cos(X) + by_cube * 3 * X**2

    X = torch.rand(4, 2, generator=generator(0), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda X: differentiable(function, X), X)


@pytest.mark.parametrize("name", ["robust", "real"])
def test_kernels_with_known_points_are_those_of_the_prior(name: str) -> None:
    prior = PRIORS[name]
    hyper = prior.sample(np.arange(6), 3).map(lambda t: t.double().reshape(2, 3, *t.shape[1:]))
    rng = np.random.default_rng(0)
    known, X = rng.random((2, 5, 3)), rng.random((2, 4, 3))
    at = numpy_kernels.KernelWith(prior, hyper, numpy_kernels.Scaling(hyper).values(known))
    (K, value), pull_back = at.forward(X)
    assert K.shape == value.shape == (2, 3, 5, 4)
    Xq = torch.from_numpy(X).requires_grad_()
    V1, V2 = (kernels.scaled(hyper, t[:, None]) for t in (torch.from_numpy(known), Xq))
    rough = None if hyper.roughness is None else hyper.roughness[..., None, None]
    expected = kernels.correlation(prior.kernel, kernels.square_distance(V1, V2), rough)
    np.testing.assert_allclose(value, expected.detach().numpy(), rtol=1e-9)
    expected = expected * hyper.output_variance[..., None, None] + prior.mean.scale**2
    np.testing.assert_allclose(K, expected.detach().numpy(), rtol=1e-9)
    by = rng.standard_normal(K.shape)
    (slope,) = torch.autograd.grad((expected * torch.from_numpy(by)).sum(), Xq)
    np.testing.assert_allclose(pull_back(by), slope.numpy(), rtol=1e-6, atol=1e-9)
