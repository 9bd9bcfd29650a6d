"""Output of attempts, until the server acknowledges that it is durable.

Sent chunks stay, so that the next session can send them again: the server may have crashed. The
server acknowledges the end of an attempt only after its output is durable.

**Invariant:** chunks go out in the order of their arrival, in every session.
**Invariant:** sent chunks make room for unsent ones, and never the reverse.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from maitre.v1 import worker_pb2 as wire
from maitre.worker.outcome import Key, key_of

# The limit of output of all attempts: unsent chunks, and sent chunks without an acknowledgement.
LOG_BYTES_QUEUED_MAX = 4 << 20
# Approximate overhead of a chunk, so that many small ones cannot exceed the limit.
CHUNK_BYTES = 128


@dataclass(eq=False, slots=True)
class Kept:
    """A chunk that is not acknowledged."""

    key: Key
    number: int
    # The previous chunk of the same attempt, if it is still here.
    before: Kept | None
    # `None`: its attempt is over.
    chunk: wire.LogChunk | None
    # Whether it was never sent.
    is_new: bool = True


class Logs:
    """Output of all attempts. Chunks are numbered in the order of their arrival."""

    def __init__(self) -> None:
        # Chunks that were sent in this session, only in earlier ones, and never, in the order of
        # numbers.
        self._sent: deque[Kept] = deque()
        self._again: deque[Kept] = deque()
        self._new: deque[Kept] = deque()
        # The number of the next chunk to arrive.
        self.end = 0
        self._bytes_new = 0
        self._bytes_told = 0
        # The last chunk of each attempt.
        self._last: dict[Key, Kept] = {}

    def __len__(self) -> int:
        return len(self._sent) + len(self._again) + len(self._new)

    @property
    def sent(self) -> int:
        """Chunks with a number below this are sent."""
        waiting = self._again or self._new
        return waiting[0].number if waiting else self.end

    @property
    def size(self) -> int:
        """The size of all chunks."""
        return self._bytes_new + self._bytes_told + len(self) * CHUNK_BYTES

    def has_room(self, n_bytes: int) -> bool:
        """Whether output of this size fits, if sent chunks make room."""
        return self._bytes_new + n_bytes <= LOG_BYTES_QUEUED_MAX

    def push(self, chunk: wire.LogChunk) -> None:
        """Adds a chunk."""
        key = key_of(chunk.attempt)
        kept = Kept(key, self.end, self._last.get(key), chunk)
        self._last[key] = kept
        self._new.append(kept)
        self.end += 1
        # The number equals the count of chunks up to this one, as the acknowledgement does.
        chunk.number = self.end
        self._bytes_new += len(chunk.bytes)
        while (told := self._sent or self._again) and self.size > LOG_BYTES_QUEUED_MAX:
            self._drop(told.popleft())

    def take(self) -> wire.LogChunk | None:
        """The next chunk to send."""
        while waiting := self._again or self._new:
            kept = waiting.popleft()
            if kept.chunk is None:
                continue
            if kept.is_new:
                kept.is_new = False
                self._bytes_new -= len(kept.chunk.bytes)
                self._bytes_told += len(kept.chunk.bytes)
            self._sent.append(kept)
            return kept.chunk
        return None

    def repeat_all(self) -> None:
        """A new session has begun: all remaining chunks are sent again."""
        self._sent.extend(self._again)
        self._sent, self._again = deque(), self._sent

    def acknowledged(self, n_kept: int) -> None:
        """The server has the first `n_kept` of all chunks."""
        for told in (self._sent, self._again):
            while told and told[0].number < n_kept:
                self._drop(told.popleft())

    def forget(self, key: Key) -> None:
        """An attempt is over: its output is not needed any more."""
        kept = self._last.pop(key, None)
        while kept is not None:
            self._empty(kept)
            kept.before, kept = None, kept.before
        while self._sent and self._sent[0].chunk is None:
            self._sent.popleft()

    def _drop(self, kept: Kept) -> None:
        """Drops the oldest chunk."""
        self._empty(kept)
        # Otherwise each chunk would keep all earlier ones of its attempt alive.
        kept.before = None
        if self._last.get(kept.key) is kept:
            del self._last[kept.key]

    def _empty(self, kept: Kept) -> None:
        if kept.chunk is None:
            return
        if kept.is_new:
            self._bytes_new -= len(kept.chunk.bytes)
        else:
            self._bytes_told -= len(kept.chunk.bytes)
        kept.chunk = None
