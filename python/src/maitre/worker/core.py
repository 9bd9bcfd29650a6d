"""A running worker, from its start to its goodbye, on threads of its own."""

from __future__ import annotations

import asyncio
import threading
import time

from maitre.door import Waits
from maitre.errors import MaitreError, WorkerError
from maitre.worker.session import RECONNECT, RECONNECT_MAX, Gone, Session
from maitre.worker.shared import LOG, Settings, Shared
from maitre.worker.stop import StopReason

# Durations are in seconds. This is the timeout for the acknowledgement of the last completions.
FAREWELL = 10.0
# Timeout for the end of the connection after the goodbye.
GOODBYE = 2.0
# Timeout for the end of attempts when the worker cannot continue.
VANISH = 10.0


class Core:
    """One run of a worker."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.shared = Shared(settings, loop)
        self._error: MaitreError | None = None
        self._ended: asyncio.Future[None] = loop.create_future()

    async def run(self) -> None:
        """Runs until the worker has left. A cancellation kills all attempts."""
        threads = [("maitre-worker", self._connect), ("maitre-leave", self._leave)]
        for name, target in threads:
            threading.Thread(target=target, name=name, daemon=True).start()
        try:
            await self._ended
        finally:
            self._close()
            await asyncio.to_thread(self._vanish)
            self.shared.timers.close()
        if self._error is not None:
            raise self._error

    def _connect(self) -> None:
        """Runs one session after the other, until a retry cannot succeed."""
        shared, waits = self.shared, Waits(RECONNECT, RECONNECT_MAX)
        while not shared.is_over:
            try:
                end = Session(shared, waits).run()
            except WorkerError as error:
                self._over(error)
                return
            except Exception as error:
                LOG.exception("worker session failed")
                self._over(WorkerError(f"the worker failed: {error!r}"))
                return
            if isinstance(end, Gone):
                self._over(None)
                return
            wait = waits.next()
            with shared.changed:
                if not shared.is_over:
                    LOG.warning("worker connection failed, next try in %.1f s: %s", wait, end.why)
                    shared.changed.wait_for(lambda: shared.is_over, wait)

    def _leave(self) -> None:
        """Waits for a departure, and leaves."""
        shared = self.shared
        with shared.changed:
            shared.changed.wait_for(lambda: shared.departure.is_leaving or shared.is_over)
            while not (shared.roster.is_empty or shared.is_over):
                stop_at = shared.departure.stop_at
                if stop_at is not None and stop_at <= time.monotonic():
                    kill_at = time.monotonic() + shared.departure.grace
                    shared.roster.stop_all(StopReason.LEAVING, "the worker shuts down", kill_at)
                    shared.changed.wait_for(lambda: shared.roster.is_empty or shared.is_over)
                    break
                shared.changed.wait(None if stop_at is None else stop_at - time.monotonic())
            shared.changed.wait_for(
                lambda: not shared.outbox.unacknowledged or shared.is_over, FAREWELL
            )
            if shared.outbox.unacknowledged and not shared.is_over:
                LOG.warning("worker completions not acknowledged before exit")
            if shared.outbox.is_connected:
                shared.outbox.goodbye()
                shared.changed.wait_for(lambda: shared.is_over, GOODBYE)
        self._over(None)

    def _over(self, error: MaitreError | None) -> None:
        """Ends the run. Only the first call counts, because the loop may be gone after it."""
        with self.shared.lock:
            if self.shared.is_over:
                return
            self._error = error
            self.shared.is_over = True
            self.shared.changed.notify_all()
        self.shared.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _close(self) -> None:
        """Stops the remaining attempts, which cannot be reported."""
        shared = self.shared
        with shared.lock:
            shared.is_over = True
            shared.roster.is_leaving = True
            text = "the worker is gone"
            shared.roster.stop_all(StopReason.LEASE_OVER, text, time.monotonic())
            shared.cut()
            shared.changed.notify_all()

    def _vanish(self) -> None:
        shared = self.shared
        with shared.changed:
            if not shared.changed.wait_for(lambda: shared.roster.is_empty, VANISH):
                LOG.error("worker attempts did not end in time")
