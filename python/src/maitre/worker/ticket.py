"""An attempt, as the worker sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from maitre.v1 import job_pb2
from maitre.v1 import worker_pb2 as wire
from maitre.worker.cursor import Cursor
from maitre.worker.outbox import Outbox
from maitre.worker.outcome import Key
from maitre.worker.stop import Stops
from maitre.worker.timers import Timer


class Runs(Protocol):
    """A running handler."""

    def ask(self) -> None:
        """Asks the handler to stop."""

    def kill(self) -> None:
        """Kills the handler, as far as possible."""


class Ticket:
    """An attempt, from its offer to its completion. The lock guards its changes."""

    def __init__(self, offer: wire.Offer, outbox: Outbox, lock: threading.RLock) -> None:
        self.key = Key(offer.job, offer.attempt)
        self.spec: job_pb2.Spec = offer.spec
        self.n_failures = offer.failures
        self.resource = offer.resource
        self.stops = Stops()
        self.runs: Runs | None = None
        # The last reported progress.
        self.progress: job_pb2.Progress | None = None
        self.started_at = time.monotonic()
        self.result_bytes_max = 0
        self.cursor = Cursor(self.key, 0, outbox)
        # The timers of its timeouts.
        self.timers: list[Timer] = []
        # Whether its end was reported. Later output and progress are ignored.
        self.has_ended = False
        self._last_word = self.started_at
        self._outbox = outbox
        self._lock = lock
        # Held while the handler is in code of this package, where no exception may be raised in it.
        self.guard = threading.RLock()

    def due(self) -> tuple[float, str] | None:
        """The time of its next timeout, and the error text. `None` if it has no timeout."""
        dues: list[tuple[float, str]] = []
        if self.spec.HasField("run_timeout_ms"):
            ms = self.spec.run_timeout_ms
            dues.append((self.started_at + ms / 1000, f"it ran for longer than {ms} ms"))
        if self.spec.HasField("silence_timeout_ms"):
            ms = self.spec.silence_timeout_ms
            dues.append((self._last_word + ms / 1000, f"it said nothing for longer than {ms} ms"))
        return min(dues, default=None)

    def says_progress(self, progress: job_pb2.Progress) -> None:
        """The handler reported progress."""
        with self._heard() as is_heard:
            if is_heard:
                self.progress = progress
                self._outbox.progress(self.key, progress)

    def says(self, stream: job_pb2.Stream.ValueType, text: bytes) -> None:
        """The handler wrote output."""
        with self._heard() as is_heard:
            if is_heard:
                self.cursor.write(stream, text)

    def end(self) -> None:
        """Ends all reports but the completion."""
        self.has_ended = True
        self.cursor.finish()
        for timer in self.timers:
            timer.cancel()

    @contextmanager
    def _heard(self) -> Iterator[bool]:
        with self.guard, self._lock:
            self._last_word = time.monotonic()
            yield not self.has_ended
