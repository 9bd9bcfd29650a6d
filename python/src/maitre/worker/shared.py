"""What the parts of one worker share."""

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
    """How jobs of one type are done here."""

    # 0 means as many as there are slots.
    execute_max: int
    handler: Callable[..., Any]


@dataclass(frozen=True)
class Detects:
    """How work of one type is looked for here."""

    detect_max: int
    detector: Callable[..., Any]


@dataclass(frozen=True)
class Settings:
    """What a worker is, once it is put together."""

    door: Door
    # All of the hello but the attempts.
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
    """The detections that are under way, by run: their types, and how they are stopped."""

    running: dict[str, tuple[str, Callable[[], None]]] = field(default_factory=dict)

    def n_of(self, type: str) -> int:
        """How many of this type."""
        return sum(1 for other, _ in self.running.values() if other == type)

    def stop(self, run: str) -> None:
        """Nobody waits for this one any more."""
        if run in self.running:
            self.running[run][1]()

    def stop_all(self) -> None:
        """Nobody waits for any of them any more."""
        for _, stop in list(self.running.values()):
            stop()


class Departure:
    """Whether the worker leaves, and when it stops what it still has."""

    def __init__(self) -> None:
        self.is_leaving = False
        # When what is left is asked to stop, and how long it then has. `None`: when it is done.
        self.stop_at: float | None = None
        self.grace = 0.0

    def leave(self, stop_at: float | None, grace: float) -> None:
        """Leaves, unless it does so already and faster."""
        self.is_leaving = True
        if stop_at is not None and (self.stop_at is None or stop_at < self.stop_at):
            self.stop_at, self.grace = stop_at, grace


class Shared:
    """One worker, over all its sessions. One lock guards it all; `changed` says that something
    did, and is what everybody waits for."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        # Where handlers that are coroutines run: not where heartbeats are sent, whatever they do.
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
        # What it wants to publish; sent with the next heartbeat.
        self.to_publish: str | None = None
        self.published = Published()
        self._configurations: dict[str, Configuration] = {}
        # Ends the session that there is.
        self.cut: Callable[[], None] = lambda: None
        # Nothing more is to come: the goodbye was heard, or there is no point in going on.
        self.is_over = False
        self._has_fence = False

    def configuration(self, type: str) -> Configuration:
        """How a type is configured."""
        return self._configurations.get(type, Configuration())

    def configured(self, configured: wire.Configured) -> None:
        """How a type is configured from now on."""
        admin, worker = _object(configured.admin), _object(configured.worker)
        self._configurations[configured.type] = Configuration(admin, worker)

    def attempts(self) -> list[Key]:
        """What the server may hear about, also what ended and is not acknowledged."""
        return sorted({*self.roster.keys, *self.outbox.unacknowledged})

    def leave(self, stop_at: float | None, grace: float) -> None:
        """Takes no more work; goes when it is empty, or stops what is left at this moment."""
        with self.lock:
            if not self.departure.is_leaving:
                self.roster.is_leaving = True
                draining = wire.WorkerMessage(draining=wire.Draining(draining=True))
                self.outbox.answer(draining)
            self.departure.leave(stop_at, grace)
            self.changed.notify_all()

    def watch_lease(self) -> None:
        """Sees to it that attempts are stopped when the lease is over."""
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
        """The lease is over: kills every attempt, reports none of them, and comes back anew."""
        text = "the lease is over"
        n_attempts = self.roster.stop_all(StopReason.LEASE_OVER, text, time.monotonic())
        if n_attempts:
            LOG.error("no heartbeat was acknowledged in time: %d attempts are killed", n_attempts)
        self.cut()


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {}
