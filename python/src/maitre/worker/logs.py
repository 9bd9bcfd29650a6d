"""Output of attempts, until the server says that it is kept.

What is sent stays, so that the next session can send it again: the server may have died with it.
The end of an attempt is acknowledged only once its output is kept.

**Invariant:** a chunk goes out in the order in which it came in, in every session.
**Invariant:** what was sent makes room for what was not, and never the other way round.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from maitre.v1 import worker_pb2 as wire
from maitre.worker.outcome import Key, key_of

# Output of all attempts: what waits to be sent, and with it what may have to be sent again.
LOG_BYTES_QUEUED_MAX = 4 << 20
# What a chunk takes beside its bytes, about: many small ones are no way around the limit.
CHUNK_BYTES = 128


@dataclass(eq=False, slots=True)
class Kept:
    """A chunk on its way."""

    key: Key
    number: int
    # The one of the same attempt before this one, if it is still here.
    before: Kept | None
    # `None`: its attempt is over.
    chunk: wire.LogChunk | None
    # Whether it was never sent.
    is_new: bool = True


class Logs:
    """Output of all attempts. Chunks are numbered as they come in."""

    def __init__(self) -> None:
        # What was sent in this session, only in others, and never: in the order of numbers.
        self._sent: deque[Kept] = deque()
        self._again: deque[Kept] = deque()
        self._new: deque[Kept] = deque()
        # The number of the next chunk to come in.
        self.end = 0
        self._bytes_new = 0
        self._bytes_told = 0
        # The last chunk of each attempt.
        self._last: dict[Key, Kept] = {}

    def __len__(self) -> int:
        return len(self._sent) + len(self._again) + len(self._new)

    @property
    def sent(self) -> int:
        """All with a number below this are sent."""
        waiting = self._again or self._new
        return waiting[0].number if waiting else self.end

    @property
    def size(self) -> int:
        """What all of it takes."""
        return self._bytes_new + self._bytes_told + len(self) * CHUNK_BYTES

    def has_room(self, n_bytes: int) -> bool:
        """Whether so much fits. Whoever writes does not wait for what was sent already."""
        return self._bytes_new + n_bytes <= LOG_BYTES_QUEUED_MAX

    def push(self, chunk: wire.LogChunk) -> None:
        """Takes in output."""
        key = key_of(chunk.attempt)
        kept = Kept(key, self.end, self._last.get(key), chunk)
        self._last[key] = kept
        self._new.append(kept)
        self.end += 1
        # So that what is acknowledged is how many need not be sent any more.
        chunk.number = self.end
        self._bytes_new += len(chunk.bytes)
        while (told := self._sent or self._again) and self.size > LOG_BYTES_QUEUED_MAX:
            self._drop(told.popleft())

    def take(self) -> wire.LogChunk | None:
        """The next one to send."""
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
        """A new session has begun: everything that is still here is sent again."""
        self._sent.extend(self._again)
        self._sent, self._again = deque(), self._sent

    def acknowledged(self, n_kept: int) -> None:
        """The server keeps the first so many of all that ever came in."""
        for told in (self._sent, self._again):
            while told and told[0].number < n_kept:
                self._drop(told.popleft())

    def forget(self, key: Key) -> None:
        """An attempt is over: nobody needs to hear what it said."""
        kept = self._last.pop(key, None)
        while kept is not None:
            self._empty(kept)
            kept.before, kept = None, kept.before
        while self._sent and self._sent[0].chunk is None:
            self._sent.popleft()

    def _drop(self, kept: Kept) -> None:
        """The oldest of all is kept no more."""
        self._empty(kept)
        # Or each would hold on to the one before it for as long as the attempt speaks.
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
