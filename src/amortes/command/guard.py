"""Ends the commands of a run when the run itself is killed, as nobody else could then.

A process of its own: `python guard.py` reads "+ID" and "-ID" lines about process groups that begin
and end. Its input closes when the run ends, for whatever reason; groups still there are stopped,
first by SIGTERM and, if that does not help, by SIGKILL. Needs the standard library only.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable

GRACE = 5.0  # seconds between SIGTERM and SIGKILL


def main(lines: Iterable[str]) -> None:
    """Follow the lines; at their end, stop the groups that are left."""
    groups: set[int] = set()
    for line in lines:
        group = int(line[1:])
        if line[0] == "+":
            groups.add(group)
        else:
            groups.discard(group)
    stop(groups)


def stop(groups: Iterable[int]) -> None:
    """Stop process groups; returns when none is left, or all have been killed."""
    left = [group for group in groups if send(group, signal.SIGTERM)]
    deadline = time.monotonic() + GRACE
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [group for group in left if send(group, 0)]
    for group in left:
        send(group, signal.SIGKILL)


def send(group: int, signum: int) -> bool:
    """Send a signal, or with 0 only ask; whether the group was there."""
    try:
        os.killpg(group, signum)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main(sys.stdin)
