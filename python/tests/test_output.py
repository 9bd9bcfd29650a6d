"""Chunks that are sent again, and chunks that make room."""

from __future__ import annotations

from maitre.v1 import worker_pb2 as wire
from maitre.worker.logs import CHUNK_BYTES, LOG_BYTES_QUEUED_MAX, Logs
from maitre.worker.outbox import Outbox
from maitre.worker.outcome import Key

ONE, TWO = Key(1, 1), Key(2, 1)


def say(logs: Logs, key: Key, offsets: range, length: int = 10) -> None:
    """Adds chunks of this length. Their offsets identify them."""
    for offset in offsets:
        logs.push(wire.LogChunk(attempt=key.ref, offset=offset, bytes=bytes(length)))


def send(logs: Logs) -> list[int]:
    """Sends all chunks."""
    return [chunk.offset for chunk in iter(logs.take, None)]


def is_empty(logs: Logs) -> bool:
    """Whether no chunk and no state is left."""
    return not logs._last and (len(logs), logs.size) == (0, 0)


def test_new_session_gets_all_chunks_from_the_oldest() -> None:
    logs = Logs()
    say(logs, ONE, range(3))
    assert (send(logs), send(logs)) == ([0, 1, 2], [])
    say(logs, ONE, range(3, 5))
    for _ in range(2):
        logs.repeat_all()
        assert logs.sent == 0
        # The connection breaks again in between.
        logs.take()
        assert logs.sent == 1
        logs.repeat_all()
        assert (send(logs), logs.sent) == ([0, 1, 2, 3, 4], 5)


def test_acknowledged_chunks_are_never_sent_again() -> None:
    box = Outbox(lambda: None)

    def numbers() -> list[int]:
        return [one.log.number for one in box.next(0).messages if one.HasField("log")]

    for offset in range(4):
        box.log(wire.LogChunk(attempt=ONE.ref, offset=offset, bytes=b"x"))
    assert numbers() == [1, 2, 3, 4]
    box.logs_acknowledged(1)
    box.connected()
    # A late acknowledgement of the last session still counts.
    box.logs_acknowledged(3)
    assert numbers() == [4]
    box.logs_acknowledged(2)
    box.connected()
    assert numbers() == [4]
    box.logs_acknowledged(4)
    box.connected()
    assert numbers() == []


def test_unsent_chunks_cannot_be_acknowledged() -> None:
    logs = Logs()
    say(logs, ONE, range(1))
    send(logs)
    say(logs, ONE, range(1, 2))
    logs.acknowledged(9)
    assert (len(logs), send(logs)) == (1, [1])
    logs.acknowledged(9)
    assert is_empty(logs)


def test_chunks_of_an_ended_attempt_are_not_sent() -> None:
    logs = Logs()
    for at in range(4):
        say(logs, ONE, range(2 * at, 2 * at + 1))
        say(logs, TWO, range(2 * at + 1, 2 * at + 2))
    send(logs)
    say(logs, ONE, range(8, 9))
    logs.forget(ONE)
    assert (send(logs), logs.sent) == ([], logs.end), "an end does not wait for it"
    logs.repeat_all()
    assert send(logs) == [1, 3, 5, 7]
    # Later output is new.
    say(logs, ONE, range(9, 10))
    assert send(logs) == [9]
    logs.forget(TWO)
    logs.forget(TWO)
    assert not is_empty(logs)
    logs.forget(ONE)
    assert is_empty(logs)


def test_sent_chunks_make_room_oldest_first() -> None:
    logs, length = Logs(), 64 << 10
    n_max = LOG_BYTES_QUEUED_MAX // length
    say(logs, ONE, range(n_max), length)
    assert not logs.has_room(1)
    assert send(logs) == list(range(n_max))
    assert logs.has_room(LOG_BYTES_QUEUED_MAX)
    say(logs, TWO, range(n_max, n_max + 2), length)
    assert logs.size <= LOG_BYTES_QUEUED_MAX
    # Also while it is sent for the second time.
    logs.repeat_all()
    logs.take()
    assert logs.sent == 4, "three had to go"
    say(logs, TWO, range(n_max + 2, 2 * n_max), length)
    assert not logs.has_room(1)
    assert send(logs) == list(range(n_max, 2 * n_max))


def test_unsent_chunks_make_no_room_and_small_ones_count() -> None:
    logs = Logs()
    say(logs, ONE, range(5), LOG_BYTES_QUEUED_MAX // 4)
    assert send(logs) == [0, 1, 2, 3, 4]
    for offset in range(40_000):
        say(logs, TWO, range(offset, offset + 1), 1)
        logs.take()
    assert len(logs) <= LOG_BYTES_QUEUED_MAX // CHUNK_BYTES
    logs.forget(ONE)
    logs.forget(TWO)
    assert is_empty(logs)
