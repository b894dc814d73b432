"""The kernel network: hyperparameter particles, exact conditioning, learned corrections."""

from amortes.nets.kernel.network import KernelConfig, KernelNetwork, KernelState

__all__ = ["KernelConfig", "KernelNetwork", "KernelState"]
