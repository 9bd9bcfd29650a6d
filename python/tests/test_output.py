"""What a worker says again after its connection broke, and what makes room."""

from __future__ import annotations

from maitre.v1 import worker_pb2 as wire
from maitre.worker.logs import CHUNK_BYTES, LOG_BYTES_QUEUED_MAX, Logs
from maitre.worker.outbox import Outbox
from maitre.worker.outcome import Key

ONE, TWO = Key(1, 1), Key(2, 1)


def say(logs: Logs, key: Key, offsets: range, length: int = 10) -> None:
    """Puts in chunks of this length, told apart by their offsets."""
    for offset in offsets:
        logs.push(wire.LogChunk(attempt=key.ref, offset=offset, bytes=bytes(length)))


def send(logs: Logs) -> list[int]:
    """Sends all that there is to send."""
    return [chunk.offset for chunk in iter(logs.take, None)]


def is_empty(logs: Logs) -> bool:
    """Whether nothing is left of anything."""
    return not logs._last and (len(logs), logs.size) == (0, 0)


def test_a_new_session_hears_all_from_the_oldest_on() -> None:
    logs = Logs()
    say(logs, ONE, range(3))
    assert (send(logs), send(logs)) == ([0, 1, 2], [])
    say(logs, ONE, range(3, 5))
    for _ in range(2):
        logs.repeat_all()
        assert logs.sent == 0
        # In the middle of it, the connection breaks again.
        logs.take()
        assert logs.sent == 1
        logs.repeat_all()
        assert (send(logs), logs.sent) == ([0, 1, 2, 3, 4], 5)


def test_what_the_server_had_time_to_keep_is_not_sent_again() -> None:
    box = Outbox(lambda: None)

    def beat(sequence: int) -> None:
        box.heartbeat(wire.Heartbeat(sequence=sequence))
        box.next(0)

    def offsets() -> list[int]:
        box.connected()
        said = [one.log for one in box.next(0).messages if one.HasField("log")]
        return [log.offset for log in said]

    box.log(wire.LogChunk(attempt=ONE.ref, offset=0, bytes=b"x"))
    # What goes out with a heartbeat is not before it.
    beat(1)
    box.acknowledged(1)
    beat(2)
    box.acknowledged(2)
    assert offsets() == [0], "one after it is not enough"
    # What the last session heard is nothing to this one, and one that was under way is no second.
    beat(3)
    beat(4)
    box.acknowledged(3)
    box.acknowledged(4)
    assert offsets() == [0]
    beat(5)
    box.acknowledged(5)
    box.log(wire.LogChunk(attempt=ONE.ref, offset=1, bytes=b"x"))
    beat(6)
    box.acknowledged(6)
    assert offsets() == [1]
    for sequence in range(7, 9):
        beat(sequence)
        box.acknowledged(sequence)
    assert offsets() == []


def test_an_answer_that_the_last_session_waited_for_is_not_waited_for_any_more() -> None:
    logs = Logs()
    say(logs, ONE, range(1))
    send(logs)
    logs.ask(1)
    logs.repeat_all()
    # Before it is sent again, and after.
    logs.ask(2)
    assert send(logs) == [0]
    logs.acknowledged(2)
    logs.ask(3)
    logs.acknowledged(3)
    assert len(logs) == 1, "one after it is not enough"
    logs.ask(4)
    logs.acknowledged(4)
    assert is_empty(logs)


def test_whose_attempt_is_over_is_not_sent_again_wherever_it_stands() -> None:
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
    # What it says after that is new.
    say(logs, ONE, range(9, 10))
    assert send(logs) == [9]
    logs.forget(TWO)
    logs.forget(TWO)
    assert not is_empty(logs)
    logs.forget(ONE)
    assert is_empty(logs)


def test_what_was_sent_makes_room_for_what_was_not_the_oldest_first() -> None:
    logs, length = Logs(), 64 << 10
    n_max = LOG_BYTES_QUEUED_MAX // length
    say(logs, ONE, range(n_max), length)
    assert not logs.has_room(1)
    assert send(logs) == list(range(n_max))
    assert logs.has_room(LOG_BYTES_QUEUED_MAX)
    say(logs, TWO, range(n_max, n_max + 2), length)
    assert logs.size <= LOG_BYTES_QUEUED_MAX
    # Also while it is on its way for the second time.
    logs.repeat_all()
    logs.take()
    assert logs.sent == 4, "three had to go"
    say(logs, TWO, range(n_max + 2, 2 * n_max), length)
    assert not logs.has_room(1)
    assert send(logs) == list(range(n_max, 2 * n_max))


def test_what_was_not_sent_makes_room_for_nothing_and_small_ones_count() -> None:
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
