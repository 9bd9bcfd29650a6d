"""The stop of an attempt: its reason and its time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum

from maitre.v1 import worker_pb2 as wire


class StopReason(str, Enum):
    """The reason to stop an attempt."""

    # A client cancelled the job.
    CANCELLED = "cancelled"
    # A different job needs the room.
    PREEMPTED = "preempted"
    # It exceeded its run timeout or its silence timeout.
    TIMEOUT = "timeout"
    # The worker leaves.
    LEAVING = "leaving"
    # The worker has lost the attempt. It does not report the end.
    STALE = "stale"
    # The server acknowledged no heartbeat for so long that it may have given the job to a different
    # worker. The worker does not report the end.
    LEASE_OVER = "lease-over"

    @property
    def is_silent(self) -> bool:
        """Whether the worker must not report the end."""
        return self in (StopReason.STALE, StopReason.LEASE_OVER)

    def __str__(self) -> str:
        return self.value


class Stopped(BaseException):
    """Raised in a handler that should stop. Like `asyncio.CancelledError`, it is not an
    `Exception`, so that a handler does not catch it by accident."""

    def __init__(self, reason: StopReason = StopReason.CANCELLED, text: str = "") -> None:
        super().__init__(text or reason.value)
        self.reason = reason


_REASONS = {
    wire.STOP_REASON_PREEMPTED: (StopReason.PREEMPTED, "it made room for another job"),
    wire.STOP_REASON_TIMEOUT: (StopReason.TIMEOUT, "the server says that its time is up"),
    wire.STOP_REASON_STALE: (StopReason.STALE, "it was given to another"),
}


def reason_of(reason: wire.StopReason.ValueType) -> tuple[StopReason, str]:
    """Converts a reason from protobuf, with a text."""
    return _REASONS.get(reason, (StopReason.CANCELLED, "it was called off"))


class Stops:
    """The two steps of a stop: the attempt is asked to stop, and killed after the grace period."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.text = ""
        self.kill_at: float | None = None
        self.asked = threading.Event()
        self.on_sooner: Callable[[float], None] = lambda _: None

    def ask(self, reason: StopReason, text: str, kill_at: float) -> None:
        """Asks the attempt to stop, and sets the time of its kill. The first reason counts, unless
        a later one forbids a report. The earliest time counts."""
        if self.reason is None or reason.is_silent:
            self.reason, self.text = reason, text
        self.asked.set()
        if self.kill_at is None or kill_at < self.kill_at:
            self.kill_at = kill_at
            self.on_sooner(kill_at)

    @property
    def is_silent(self) -> bool:
        """Whether the worker must not report the end."""
        return self.reason is not None and self.reason.is_silent
