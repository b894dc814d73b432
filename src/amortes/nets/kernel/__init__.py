"""The kernel network: hyperparameter particles, learned by an encoder, and exact conditioning."""

from amortes.nets.kernel.network import KernelConfig, KernelNetwork, KernelState

__all__ = ["KernelConfig", "KernelNetwork", "KernelState"]
