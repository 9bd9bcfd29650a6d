"""Timers on a thread of their own, which a handler cannot block."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

_LOG = logging.getLogger("maitre.worker")


class Timer:
    """A scheduled call."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._is_cancelled = False

    def cancel(self) -> None:
        """Cancels the call, unless it has begun."""
        self._is_cancelled = True

    def fire(self) -> None:
        """Runs the call."""
        if not self._is_cancelled:
            self._call()


class Timers:
    """Runs calls at their times. They should be quick."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="maitre-timers", daemon=True)
        self._thread.start()

    def at(self, moment: float, call: Callable[[], None]) -> Timer:
        """Schedules a call at a time of the monotonic clock, or now if it is past."""
        timer = Timer(call)
        with self._changed:
            heapq.heappush(self._due, (moment, next(self._numbers), timer))
            self._changed.notify()
        return timer

    def close(self) -> None:
        """Drops all calls."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _run(self) -> None:
        while (timer := self._next()) is not None:
            try:
                timer.fire()
            except Exception:
                _LOG.exception("timer call failed")

    def _next(self) -> Timer | None:
        with self._changed:
            while not self._is_closed:
                now = time.monotonic()
                if self._due and self._due[0][0] <= now:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(self._due[0][0] - now if self._due else None)
            return None
