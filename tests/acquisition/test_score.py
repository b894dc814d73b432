import torch
from torch import Tensor

from amortes.acquisition import differentiate, with_gradient

X = torch.tensor([[0.5, 0.1], [2.0, 0.7]], dtype=torch.float64)


class Parabola:
    """Its gradient is right, but told in a way that shows who was asked."""

    asked = 0

    def __call__(self, X: Tensor) -> Tensor:
        return X.square().sum(-1)

    def with_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        self.asked += 1
        return self(X), 2.0 * X


def test_a_score_that_knows_its_gradient_is_asked() -> None:
    score = Parabola()
    f, g = with_gradient(score, X)
    assert score.asked == 1
    for ours, theirs in zip((f, g), differentiate(score, X), strict=True):
        assert torch.equal(ours, theirs)
    assert score.asked == 1


def test_other_scores_are_differentiated_even_without_gradients() -> None:
    with torch.inference_mode():
        f, g = with_gradient(lambda X: X.prod(-1), X)
    assert torch.equal(f, X.prod(-1))
    assert torch.equal(g, X.flip(-1))
    assert not f.requires_grad
    f, g = with_gradient(lambda X: X.detach().sum(-1), X)
    assert torch.equal(f, X.sum(-1))
    assert torch.equal(g, torch.zeros_like(X))
