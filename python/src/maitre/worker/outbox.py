"""Messages that wait to be sent to the server, and the size of a batch.

**Invariant:** everything in here is bounded, and no caller waits for the network. Output without
room is dropped. A completion is kept until the server has it. The caller holds the worker's lock.
**Invariant:** a completion goes out after the output before it, in every session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from maitre.v1 import job_pb2
from maitre.v1 import worker_pb2 as wire
from maitre.worker.logs import Logs
from maitre.worker.outcome import Key

# The limit of accepts and refusals that wait to be sent. A server that causes more does not read.
ANSWERS_MAX = 10_000
# Pages of proposals that wait to be sent.
PAGES_MAX = 8
# The size at which a batch ends. One further message may follow, far below the 4 MiB that servers
# accept.
BATCH_BYTES_MAX = 512 << 10
# The shortest interval between progress reports of one attempt, in seconds.
PROGRESS_EVERY = 1.0
# The limits of unacknowledged completions, in number and in bytes. Beyond them, the worker refuses
# offers.
COMPLETIONS_MAX = 1_000
COMPLETION_BYTES_MAX = 64 << 20


@dataclass
class Kept:
    """The end of an attempt, until the server acknowledges it."""

    complete: wire.Complete
    # The number of output chunks that must go out before it.
    after_logs: int
    is_unsent: bool = True
    sent_at: float | None = None


@dataclass
class Told:
    """Progress of one attempt."""

    waiting: job_pb2.Progress | None = None
    sent_at: float | None = None


@dataclass
class Parcel:
    """The next batch."""

    messages: list[wire.WorkerMessage] = field(default_factory=list)
    n_bytes: int = 0
    # When more becomes due, if no message comes before.
    next_at: float | None = None
    # The last message is the goodbye.
    is_last: bool = False

    @property
    def is_full(self) -> bool:
        """Whether the batch is full."""
        return self.n_bytes >= BATCH_BYTES_MAX


class Outbox:
    """The messages to send. `wake` is called when there is one."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.is_connected = False
        self._heartbeat: wire.Heartbeat | None = None
        self._answers: deque[wire.WorkerMessage] = deque()
        self._pages: deque[wire.WorkerMessage] = deque()
        self._progress: dict[Key, Told] = {}
        self._logs = Logs()
        self._kept: dict[Key, Kept] = {}
        self._kept_bytes = 0
        self._says_goodbye = False
        self.is_goodbye_sent = False

    def connected(self) -> None:
        """A new session has begun: messages that the last one may not have delivered are sent
        again."""
        self.is_connected = True
        self._heartbeat = None
        self._pages.clear()
        self._logs.repeat_all()
        for kept in self._kept.values():
            kept.is_unsent = True
        self._wake()

    def disconnected(self) -> None:
        """The connection ended."""
        self.is_connected = False
        self._wake()

    def heartbeat(self, heartbeat: wire.Heartbeat) -> None:
        """Sets the latest heartbeat, and replaces an unsent one."""
        self._heartbeat = heartbeat
        self._wake()

    def answer(self, answer: wire.WorkerMessage) -> bool:
        """An accept, a refusal, or a requested descriptor. `False` if there are too many."""
        if len(self._answers) >= ANSWERS_MAX:
            return False
        self._answers.append(answer)
        self._wake()
        return True

    def page(self, page: wire.WorkerMessage) -> None:
        """A page of proposals, or the end of a detection. Dropped without a connection."""
        if self.is_connected:
            self._pages.append(page)
            self._wake()

    @property
    def has_page_room(self) -> bool:
        """Whether there is room for a page, or no connection to wait for."""
        return not self.is_connected or len(self._pages) < PAGES_MAX

    def progress(self, key: Key, progress: job_pb2.Progress) -> None:
        """The progress of an attempt."""
        self._progress.setdefault(key, Told()).waiting = progress
        self._wake()

    def logs_acknowledged(self, n_kept: int) -> None:
        """The server has the first `n_kept` output chunks."""
        self._logs.acknowledged(n_kept)

    def has_log_room(self, n_bytes: int) -> bool:
        """Whether output of this size fits."""
        return self._logs.has_room(n_bytes)

    def log(self, chunk: wire.LogChunk) -> None:
        """Adds output of an attempt."""
        self._logs.push(chunk)
        self._wake()

    def complete(self, key: Key, complete: wire.Complete) -> None:
        """An attempt ended. Its completion is sent until the server acknowledges it."""
        self._drop(key)
        self._kept[key] = Kept(complete, self._logs.end)
        self._kept_bytes += _bytes_of(complete)
        self._wake()

    def forget(self, key: Key) -> None:
        """The server has the completion, or rejects it."""
        self._drop(key)
        self._logs.forget(key)
        self._progress.pop(key, None)
        self._wake()

    def repeat(self, key: Key) -> bool:
        """Sends a completion again now. `False`: there is none."""
        kept = self._kept.get(key)
        if kept is None:
            return False
        kept.is_unsent = True
        self._wake()
        return True

    def repeat_older_than(self, age: float, now: float) -> None:
        """Sends unacknowledged completions again that are older than this."""
        for kept in self._kept.values():
            if kept.sent_at is not None and now - kept.sent_at >= age:
                kept.is_unsent = True

    @property
    def unacknowledged(self) -> list[Key]:
        """Attempts that ended and are not acknowledged."""
        return list(self._kept)

    @property
    def has_completion_room(self) -> bool:
        """Whether a further attempt may be accepted."""
        return len(self._kept) < COMPLETIONS_MAX and self._kept_bytes < COMPLETION_BYTES_MAX

    def goodbye(self) -> None:
        """Sends a goodbye after all other messages."""
        self._says_goodbye = True
        self._wake()

    def next(self, now: float) -> Parcel:
        """Takes the messages of the next batch in the order of urgency: the heartbeat first, and
        the output of an attempt before its end."""
        parcel = Parcel()
        if self._heartbeat is not None:
            parcel.messages.append(wire.WorkerMessage(heartbeat=self._heartbeat))
            self._heartbeat = None
        parcel.messages.extend(self._answers)
        self._answers.clear()
        while self._pages and not parcel.is_full:
            page = self._pages.popleft()
            parcel.n_bytes += page.ByteSize()
            parcel.messages.append(page)
        self._take_progress(parcel, now)
        while not parcel.is_full and (chunk := self._logs.take()) is not None:
            parcel.n_bytes += len(chunk.bytes)
            parcel.messages.append(wire.WorkerMessage(log=chunk))
        self._take_completions(parcel, now)
        if parcel.is_full:
            parcel.next_at = now
        elif self._says_goodbye:
            self.is_goodbye_sent = parcel.is_last = True
            parcel.messages.append(wire.WorkerMessage(goodbye=wire.Goodbye()))
        return parcel

    def _take_progress(self, parcel: Parcel, now: float) -> None:
        """Adds due progress reports, and returns the time of the next. Ended attempts have none."""
        for key, told in self._progress.items():
            if told.waiting is None:
                continue
            due_at = now if told.sent_at is None else told.sent_at + PROGRESS_EVERY
            if due_at > now and key not in self._kept:
                sooner = parcel.next_at is None or due_at < parcel.next_at
                parcel.next_at = due_at if sooner else parcel.next_at
                continue
            report = wire.ProgressReport(attempt=key.ref, progress=told.waiting)
            told.waiting, told.sent_at = None, now
            parcel.messages.append(wire.WorkerMessage(progress=report))

    def _take_completions(self, parcel: Parcel, now: float) -> None:
        for kept in self._kept.values():
            if parcel.is_full:
                return
            if kept.is_unsent and kept.after_logs <= self._logs.sent:
                kept.is_unsent, kept.sent_at = False, now
                parcel.n_bytes += _bytes_of(kept.complete)
                parcel.messages.append(wire.WorkerMessage(complete=kept.complete))

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._kept_bytes -= _bytes_of(kept.complete)


def _bytes_of(complete: wire.Complete) -> int:
    return len(complete.error) + len(complete.result)
