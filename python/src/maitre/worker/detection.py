"""Detection: the worker looks for work of a type."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterable, Callable, Iterable
from datetime import datetime
from typing import Any

from typing_extensions import Unpack

from maitre import jobs
from maitre.spec import Options, Payload, Spec
from maitre.v1 import worker_pb2 as wire
from maitre.worker.attempt import Configuration, Published
from maitre.worker.outcome import Failure, clean
from maitre.worker.shared import Detects, Shared
from maitre.worker.stop import Stopped, StopReason

# The size of a page, in proposals and in bytes.
PAGE_MAX = 100
PAGE_BYTES_MAX = 256 << 10
# The time that a detector has after its stop, in seconds.
PATIENCE = 5.0


class Proposal:
    """Work that was found. While a job with the same key is unfinished, a proposal has no
    effect."""

    def __init__(
        self,
        about: str,
        payload: Payload = None,
        *,
        summary: str = "",
        **options: Unpack[Options],
    ) -> None:
        spec = Spec("", payload, **options).wire
        spec.dedupe_key = spec.dedupe_key or about
        self.wire = wire.Proposal(spec=spec, id=about, summary=summary)


class Detection:
    """One detection, as its detector sees it. A detector calls `propose`, or yields proposals."""

    def __init__(self, shared: Shared, request: wire.Detect) -> None:
        self._shared = shared
        self._request = request
        self._page: list[wire.Proposal] = []
        self._page_bytes = 0
        self._n_seen = 0
        self._n_skipped = 0
        self._stopped = threading.Event()
        self._on_stop: Callable[[], None] = lambda: None
        self._has_ended = False
        self.configuration: Configuration = shared.configuration(request.type)
        self.published: Published = shared.published

    @property
    def type(self) -> str:
        """The type."""
        return self._request.type

    @property
    def run(self) -> str:
        """The name of the run."""
        return self._request.run

    @property
    def last_success(self) -> datetime | None:
        """When the last successful run of this type began."""
        has_one = self._request.HasField("last_success_ms")
        return jobs.at(self._request.last_success_ms) if has_one else None

    @property
    def proposals_max(self) -> int:
        """The limit of proposals. The server rejects further ones."""
        return self._request.proposals_max

    @property
    def cancelled(self) -> bool:
        """Whether it should stop."""
        return self._stopped.is_set()

    def check(self) -> None:
        """Raises `Stopped` if it should stop."""
        if self.cancelled:
            raise Stopped(StopReason.CANCELLED, "nobody waits for this detection any more")

    def saw(self, n_seen: int, n_skipped: int = 0) -> None:
        """Counts objects that were examined, and objects that could not be read."""
        with self._shared.lock:
            self._n_seen += n_seen
            self._n_skipped += n_skipped

    def propose(
        self, about: str | Proposal, payload: Payload = None, **options: Unpack[Options]
    ) -> None:
        """Proposes work. Raises `Stopped` if the detection should stop. A plain function waits here
        for room. A coroutine yields proposals instead, and waits there."""
        proposal = about if isinstance(about, Proposal) else Proposal(about, payload, **options)
        with self._shared.changed:
            self._add(proposal)
            if self._is_full:
                while not self._shared.outbox.has_page_room and not self.cancelled:
                    self._shared.changed.wait()
                self._send()
        self.check()

    async def propose_soon(self, proposal: Proposal) -> None:
        """Proposes work, and lets other coroutines run while there is no room."""
        with self._shared.lock:
            self._add(proposal)
        while self._is_full and not self.cancelled:
            with self._shared.lock:
                if self._shared.outbox.has_page_room:
                    self._send()
                    break
            await asyncio.sleep(0.02)
        self.check()

    def _stop(self) -> None:
        """Stops the detection."""
        self._stopped.set()
        self._on_stop()
        self._shared.changed.notify_all()

    def _when_stopped(self, call: Callable[[], None]) -> None:
        """Sets the callback for a stop."""
        self._on_stop = call

    def _end(self, end: wire.DetectionEnd.ValueType, error: str) -> None:
        """Ends the detection. The first call counts."""
        with self._shared.lock:
            if self._has_ended:
                return
            self._has_ended = True
            if not self.cancelled:
                self._send()
            self._shared.outbox.page(_detected(self.run, end, error, self._n_seen, self._n_skipped))

    @property
    def _is_full(self) -> bool:
        return len(self._page) >= PAGE_MAX or self._page_bytes >= PAGE_BYTES_MAX

    def _add(self, proposal: Proposal) -> None:
        found = proposal.wire
        found.spec.type = found.spec.type or self.type
        self._page.append(found)
        self._page_bytes += found.ByteSize()

    def _send(self) -> None:
        if self._page and not self.cancelled and not self._has_ended_before():
            proposals = wire.Proposals(run=self.run, proposals=self._page)
            self._shared.outbox.page(wire.WorkerMessage(proposals=proposals))
        self._page, self._page_bytes = [], 0

    def _has_ended_before(self) -> bool:
        return self.run not in self._shared.detections.running


def asked(shared: Shared, request: wire.Detect) -> None:
    """The server requests a detection."""
    detects = shared.settings.detectors.get(request.type)
    problem = _problem(shared, request, detects)
    if problem or detects is None:
        is_full = detects is not None
        end = wire.DETECTION_END_AT_CAPACITY if is_full else wire.DETECTION_END_FAILED
        shared.outbox.page(_detected(request.run, end, problem))
        return
    detection = Detection(shared, request)
    shared.detections.running[request.run] = (request.type, detection._stop)
    if request.timeout_ms:
        moment = time.monotonic() + request.timeout_ms / 1000
        shared.timers.at(moment, lambda: _too_late(shared, request.run))
    _look(shared, detection, detects.detector)


def _problem(shared: Shared, request: wire.Detect, detects: Detects | None) -> str:
    if detects is None:
        return "this worker does not look for it"
    if shared.roster.is_leaving:
        return "draining"
    is_full = shared.detections.n_of(request.type) >= detects.detect_max
    return "at capacity" if is_full else ""


def _too_late(shared: Shared, run: str) -> None:
    with shared.lock:
        shared.detections.stop(run)


def _look(shared: Shared, detection: Detection, detector: Callable[..., Any]) -> None:
    """Runs a detector on a thread or on the loop, by its kind."""

    def over(error: BaseException | None) -> None:
        with shared.lock:
            _over(detection, error)
            shared.detections.running.pop(detection.run, None)
            shared.changed.notify_all()

    def give_up() -> None:
        over(Failure("it did not stop when it was told to"))

    def is_stopped() -> None:
        shared.timers.at(time.monotonic() + PATIENCE, give_up)

    is_async = inspect.iscoroutinefunction(detector) or inspect.isasyncgenfunction(detector)
    if not is_async:
        detection._when_stopped(is_stopped)
        name = f"maitre-detect-{detection.type}"
        look = _in_thread(detection, detector, over)
        threading.Thread(target=look, name=name, daemon=True).start()
        return

    def start() -> None:
        task = shared.loop.create_task(_await(detection, detector))

        def stop() -> None:
            shared.loop.call_soon_threadsafe(task.cancel)
            is_stopped()

        detection._when_stopped(stop)
        if detection.cancelled:
            stop()
        task.add_done_callback(lambda task: over(_error_of(task.result)))

    shared.loop.call_soon_threadsafe(start)


def _in_thread(
    detection: Detection, detector: Callable[..., Any], over: Callable[[BaseException | None], None]
) -> Callable[[], None]:
    def look() -> None:
        found = detector(detection)
        if isinstance(found, Iterable):
            for proposal in found:
                detection.propose(proposal)

    return lambda: over(_error_of(look))


async def _await(detection: Detection, detector: Callable[..., Any]) -> None:
    found = detector(detection)
    if not isinstance(found, AsyncIterable):
        found = await found
    if isinstance(found, AsyncIterable):
        async for proposal in found:
            await detection.propose_soon(proposal)
    elif isinstance(found, Iterable):
        for proposal in found:
            await detection.propose_soon(proposal)


def _over(detection: Detection, error: BaseException | None) -> None:
    if detection.cancelled:
        detection._end(wire.DETECTION_END_STOPPED, "it was told to stop")
    elif error is None:
        detection._end(wire.DETECTION_END_COMPLETE, "")
    else:
        said = error.message if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
        detection._end(wire.DETECTION_END_FAILED, clean(said))


def _error_of(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except BaseException as error:
        return error
    return None


def _detected(
    run: str,
    end: wire.DetectionEnd.ValueType,
    error: str,
    n_seen: int = 0,
    n_skipped: int = 0,
) -> wire.WorkerMessage:
    detected = wire.Detected(run=run, end=end, error=error, seen=n_seen, skipped=n_skipped)
    return wire.WorkerMessage(detected=detected)
