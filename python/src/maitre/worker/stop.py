"""Why and how soon an attempt is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum

from maitre.v1 import worker_pb2 as wire


class StopReason(str, Enum):
    """Why an attempt is to end before it is done."""

    # Somebody called the job off.
    CANCELLED = "cancelled"
    # Another job needs the room.
    PREEMPTED = "preempted"
    # It ran, or was silent, for longer than it may.
    TIMEOUT = "timeout"
    # The worker leaves.
    LEAVING = "leaving"
    # It is not this worker's any more. Nothing is reported.
    STALE = "stale"
    # The server was not heard of for so long that it may have given the job to another worker.
    # Nothing is reported.
    LEASE_OVER = "lease-over"

    @property
    def is_silent(self) -> bool:
        """Whether the server does not want to hear about it, or may not be told."""
        return self in (StopReason.STALE, StopReason.LEASE_OVER)

    def __str__(self) -> str:
        return self.value


class Stopped(BaseException):
    """Raised in a handler that is asked to stop. Like `asyncio.CancelledError`, it is no
    `Exception`, so that a handler does not swallow it by accident."""

    def __init__(self, reason: StopReason = StopReason.CANCELLED, text: str = "") -> None:
        super().__init__(text or reason.value)
        self.reason = reason


_REASONS = {
    wire.STOP_REASON_PREEMPTED: (StopReason.PREEMPTED, "it made room for another job"),
    wire.STOP_REASON_TIMEOUT: (StopReason.TIMEOUT, "the server says that its time is up"),
    wire.STOP_REASON_STALE: (StopReason.STALE, "it was given to another"),
}


def reason_of(reason: wire.StopReason.ValueType) -> tuple[StopReason, str]:
    """A reason of the wire, with words for it."""
    return _REASONS.get(reason, (StopReason.CANCELLED, "it was called off"))


class Stops:
    """The two steps of an end: it is asked to stop, and when the grace is over it is made to."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.text = ""
        self.kill_at: float | None = None
        self.asked = threading.Event()
        self.on_sooner: Callable[[float], None] = lambda _: None

    def ask(self, reason: StopReason, text: str, kill_at: float) -> None:
        """Asks it to stop, and sets when it is made to. The first reason counts, unless a later
        one means that nothing may be reported; the earliest end counts."""
        if self.reason is None or reason.is_silent:
            self.reason, self.text = reason, text
        self.asked.set()
        if self.kill_at is None or kill_at < self.kill_at:
            self.kill_at = kill_at
            self.on_sooner(kill_at)

    @property
    def is_silent(self) -> bool:
        """Whether nothing may be reported."""
        return self.reason is not None and self.reason.is_silent
