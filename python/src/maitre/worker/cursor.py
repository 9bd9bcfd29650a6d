"""Output of an attempt: counted, cut at the limit, and with a line for dropped parts."""

from __future__ import annotations

from maitre.v1 import job_pb2
from maitre.v1 import worker_pb2 as wire
from maitre.worker.outbox import Outbox
from maitre.worker.outcome import Key

# Bytes of output in one message.
CHUNK_BYTES_MAX = 64 << 10


class Cursor:
    """The position in the output of one attempt. The caller holds the worker's lock."""

    def __init__(self, key: Key, bytes_max: int, outbox: Outbox) -> None:
        self._key = key
        self._outbox = outbox
        # Bytes on both streams so far, dropped ones included.
        self._offset = 0
        self._cut_line = f"\n[maitre: output beyond {bytes_max} bytes is not kept]\n".encode()
        # Bytes that may still be sent, without the line about the cut.
        self._left = max(0, bytes_max - len(self._cut_line))
        # Bytes that were dropped since the last chunk for lack of room.
        self._lost = 0
        self._is_cut = bytes_max == 0

    def write(self, stream: job_pb2.Stream.ValueType, text: bytes) -> None:
        """Sends output. If there is no room, the output is dropped, and a line says so."""
        for start in range(0, len(text), CHUNK_BYTES_MAX):
            self._piece(stream, text[start : start + CHUNK_BYTES_MAX])

    def finish(self) -> None:
        """Reports dropped output at the end."""
        self._tell_lost(job_pb2.STREAM_ERR)

    def _piece(self, stream: job_pb2.Stream.ValueType, piece: bytes) -> None:
        if self._is_cut:
            self._offset += len(piece)
            return
        kept, over = piece[: self._left], piece[self._left :]
        self._left -= len(kept)
        if kept and self._outbox.has_log_room(len(kept)):
            self._tell_lost(stream)
            self._push(stream, kept)
        else:
            self._lost += len(kept)
            self._offset += len(kept)
        if over:
            self._is_cut = True
            self._tell_lost(stream)
            self._push(stream, self._cut_line)
            self._offset += len(over)

    def _tell_lost(self, stream: job_pb2.Stream.ValueType) -> None:
        if self._lost:
            line = f"\n[maitre: {self._lost} bytes of output were lost here]\n"
            self._lost = 0
            self._push(stream, line.encode())

    def _push(self, stream: job_pb2.Stream.ValueType, text: bytes) -> None:
        """The worker's own lines need no room: they are short and few."""
        chunk = wire.LogChunk(attempt=self._key.ref, stream=stream, offset=self._offset, bytes=text)
        self._outbox.log(chunk)
        self._offset += len(text)
