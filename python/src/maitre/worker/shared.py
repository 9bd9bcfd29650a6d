"""The shared state of a worker's parts."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from maitre.door import Door
from maitre.v1 import worker_pb2 as wire
from maitre.worker.attempt import Configuration, Published
from maitre.worker.lease import Lease
from maitre.worker.outbox import Outbox
from maitre.worker.outcome import RESULT_BYTES_MAX, Key
from maitre.worker.roster import Roster
from maitre.worker.stop import StopReason
from maitre.worker.timers import Timers

LOG = logging.getLogger("maitre.worker")


@dataclass(frozen=True)
class Handles:
    """The handler of one type."""

    # 0 means the number of slots.
    execute_max: int
    handler: Callable[..., Any]


@dataclass(frozen=True)
class Detects:
    """The detector of one type."""

    detect_max: int
    detector: Callable[..., Any]


@dataclass(frozen=True)
class Settings:
    """The settings of a worker."""

    door: Door
    # The hello without the attempts.
    hello: wire.Hello
    handlers: dict[str, Handles]
    detectors: dict[str, Detects]
    # As JSON.
    descriptors: dict[str, str]
    # In seconds.
    leave_grace: float
    stop_grace: float


@dataclass
class Detections:
    """Running detections, by run: their types, and their stop functions."""

    running: dict[str, tuple[str, Callable[[], None]]] = field(default_factory=dict)

    def n_of(self, type: str) -> int:
        """The number of detections of this type."""
        return sum(1 for other, _ in self.running.values() if other == type)

    def stop(self, run: str) -> None:
        """Stops a detection."""
        if run in self.running:
            self.running[run][1]()

    def stop_all(self) -> None:
        """Stops all detections."""
        for _, stop in list(self.running.values()):
            stop()


class Departure:
    """Whether the worker leaves, and when it stops its remaining attempts."""

    def __init__(self) -> None:
        self.is_leaving = False
        # When remaining attempts should stop, and their grace period. `None`: when they end.
        self.stop_at: float | None = None
        self.grace = 0.0

    def leave(self, stop_at: float | None, grace: float) -> None:
        """Leaves, unless the worker already leaves as fast."""
        self.is_leaving = True
        if stop_at is not None and (self.stop_at is None or stop_at < self.stop_at):
            self.stop_at, self.grace = stop_at, grace


class Shared:
    """One worker, over all its sessions. One lock guards all fields. `changed` signals each
    change."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        # The loop of handlers that are coroutines. Heartbeats have a thread that a handler cannot
        # block.
        self.loop = loop
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.timers = Timers()
        self.lease = Lease()
        self.outbox = Outbox(self.changed.notify_all)
        self.roster = Roster(settings.hello.slots)
        self.detections = Detections()
        self.departure = Departure()
        # Whether any session ever began.
        self.was_welcomed = False
        # The number of the last heartbeat, over all sessions.
        self.sequence = 0
        self.result_bytes_max = RESULT_BYTES_MAX
        self.log_bytes_max = 0
        self.is_unwell = False
        self.hints: list[str] | None = None
        # A context to publish with the next heartbeat.
        self.to_publish: str | None = None
        self.published = Published()
        self._configurations: dict[str, Configuration] = {}
        # Ends the current session.
        self.cut: Callable[[], None] = lambda: None
        # The worker is over: the goodbye was answered, or a retry cannot succeed.
        self.is_over = False
        self._has_fence = False

    def configuration(self, type: str) -> Configuration:
        """The configuration of a type."""
        return self._configurations.get(type, Configuration())

    def configured(self, configured: wire.Configured) -> None:
        """Sets the configuration of a type."""
        admin, worker = _object(configured.admin), _object(configured.worker)
        self._configurations[configured.type] = Configuration(admin, worker)

    def attempts(self) -> list[Key]:
        """The attempts of a heartbeat, with ended ones that are not acknowledged."""
        return sorted({*self.roster.keys, *self.outbox.unacknowledged})

    def leave(self, stop_at: float | None, grace: float) -> None:
        """Takes no more jobs. Leaves when it is empty, or stops the remaining attempts at this
        time."""
        with self.lock:
            if not self.departure.is_leaving:
                self.roster.is_leaving = True
                draining = wire.WorkerMessage(draining=wire.Draining(draining=True))
                self.outbox.answer(draining)
            self.departure.leave(stop_at, grace)
            self.changed.notify_all()

    def watch_lease(self) -> None:
        """Stops attempts when the lease is over."""
        if not self._has_fence and self.lease.over_at is not None:
            self._has_fence = True
            self.timers.at(self.lease.over_at, self._lease_may_be_over)

    def _lease_may_be_over(self) -> None:
        with self.lock:
            self._has_fence = False
            if self.lease.is_over(time.monotonic()):
                self.fence()
            else:
                self.watch_lease()

    def fence(self) -> None:
        """The lease is over: kills every attempt without a report, and reconnects."""
        text = "the lease is over"
        n_attempts = self.roster.stop_all(StopReason.LEASE_OVER, text, time.monotonic())
        if n_attempts:
            LOG.error("no heartbeat was acknowledged in time: %d attempts are killed", n_attempts)
        self.cut()


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {}
