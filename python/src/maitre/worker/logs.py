"""Output of attempts, until the server can be believed to have kept it.

What is sent stays, so that the next session can send it again: the server may have died with it.
An acknowledged heartbeat says that all before it was heard, and another one, sent after that, that
the server had time to keep what it heard. The end of an attempt is acknowledged only once its
output is kept.

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
        # A heartbeat of this session without an answer yet, and how much was sent before it.
        self._asked: tuple[int, int] | None = None
        # Those with a number below this were heard.
        self._heard = 0

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
        self._asked, self._heard = None, 0

    def ask(self, sequence: int) -> None:
        """A heartbeat goes out, after all that is sent. One is asked about at a time."""
        if self._asked is None:
            self._asked = (sequence, self.sent)

    def acknowledged(self, sequence: int) -> None:
        """The server has a heartbeat of this session."""
        if self._asked is None or sequence < self._asked[0]:
            return
        # Heard before this heartbeat was sent, and that is heard too.
        while self._sent and self._sent[0].number < self._heard:
            self._drop(self._sent.popleft())
        self._heard = self._asked[1]
        self._asked = None

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
