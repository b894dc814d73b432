import torch

from amortes.device import on_cpu


def test_tensors_are_made_on_the_cpu() -> None:
    @on_cpu()
    def made() -> str:
        return torch.zeros(1).device.type

    try:
        torch.set_default_device("meta")
        assert torch.zeros(1).device.type == "meta"
        assert made() == "cpu"
        with on_cpu():
            assert torch.ones(2).sum() == 2
        assert torch.zeros(1).device.type == "meta"
    finally:
        torch.set_default_device("cpu")
