"""The parts of a worker."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from maitre import Attempt, Done, Failure, PermanentFailure, StopReason
from maitre.door import Door, Waits
from maitre.v1 import job_pb2
from maitre.v1 import worker_pb2 as wire
from maitre.worker.cursor import CHUNK_BYTES_MAX, Cursor
from maitre.worker.lease import Lease
from maitre.worker.logs import LOG_BYTES_QUEUED_MAX
from maitre.worker.outbox import BATCH_BYTES_MAX, Outbox, Parcel
from maitre.worker.outcome import TEXT_BYTES_MAX, Key, Outcome, clean, completion
from maitre.worker.roster import Roster
from maitre.worker.shared import Handles, Settings, Shared
from maitre.worker.stop import Stops
from maitre.worker.supervise import offered
from tests.site import PATIENCE

KEY = Key(7, 1)


def outbox() -> Outbox:
    """An outbox without a reader."""
    return Outbox(lambda: None)


def kinds(parcel: Parcel) -> list[str | None]:
    """The kinds of the messages, in order."""
    return [message.WhichOneof("message") for message in parcel.messages]


def test_a_lease_counts_from_when_the_acknowledged_heartbeat_was_sent() -> None:
    lease = Lease()
    assert not lease.is_over(1e9)
    lease.welcome(0, 10)
    lease.sent(1, 2)
    lease.sent(2, 4)
    assert lease.over_at == 9
    assert lease.acknowledged(1)
    assert lease.over_at == 11
    assert lease.acknowledged(2)
    assert not lease.acknowledged(1)
    assert not lease.is_over(12.9)
    assert lease.is_over(13)
    lease.sent(3, 50)
    lease.welcome(10, 10)
    assert not lease.acknowledged(3)
    assert lease.over_at == 19


def test_batch_starts_with_heartbeat_and_has_output_before_its_end() -> None:
    box = outbox()
    box.complete(KEY, wire.Complete())
    box.log(wire.LogChunk(bytes=b"x"))
    box.progress(KEY, job_pb2.Progress())
    assert box.answer(wire.WorkerMessage(accept=wire.Accept()))
    box.heartbeat(wire.Heartbeat())
    box.goodbye()
    parcel = box.next(0)
    said = ["heartbeat", "accept", "progress", "log", "complete", "goodbye"]
    assert (kinds(parcel), parcel.is_last) == (said, True)


def test_a_completion_waits_for_its_output_and_is_sent_until_it_is_acknowledged() -> None:
    box = outbox()
    for _ in range(3):
        box.log(wire.LogChunk(attempt=KEY.ref, bytes=bytes(BATCH_BYTES_MAX // 2)))
    box.complete(KEY, wire.Complete())
    assert (kinds(box.next(0)), kinds(box.next(0))) == (["log", "log"], ["log", "complete"])
    assert kinds(box.next(0)) == []
    box.repeat_older_than(5, 4)
    assert kinds(box.next(4)) == []
    box.repeat_older_than(5, 5)
    assert kinds(box.next(5)) == ["complete"]
    box.connected()
    assert (kinds(box.next(5)), kinds(box.next(5))) == (["log", "log"], ["log", "complete"])
    box.forget(KEY)
    box.connected()
    assert kinds(box.next(5)) == []


def test_progress_is_sent_once_a_second_and_the_last_at_once() -> None:
    box = outbox()
    box.progress(KEY, job_pb2.Progress())
    box.progress(KEY, job_pb2.Progress())
    assert kinds(box.next(0)) == ["progress"]
    box.progress(KEY, job_pb2.Progress())
    parcel = box.next(0.5)
    assert (kinds(parcel), parcel.next_at) == ([], 1.0)
    assert kinds(box.next(1)) == ["progress"]
    box.progress(KEY, job_pb2.Progress())
    box.complete(KEY, wire.Complete())
    assert kinds(box.next(1)) == ["progress", "complete"]


def test_too_many_completions_leave_no_room_for_more() -> None:
    box = outbox()
    large = wire.Complete(result=bytes(1 << 20))
    for job in range(63):
        box.complete(Key(job, 1), large)
    assert box.has_completion_room
    box.complete(Key(63, 1), large)
    assert not box.has_completion_room
    box.forget(Key(0, 1))
    assert box.has_completion_room


def test_output_is_cut_at_the_limit_and_says_so_once() -> None:
    box = outbox()
    cursor = Cursor(KEY, 100, box)
    for _ in range(30):
        cursor.write(job_pb2.STREAM_OUT, b"0123456789")
    text = b"".join(message.log.bytes for message in box.next(0).messages)
    assert (len(text), text.count(b"beyond 100 bytes is not kept")) == (100, 1)


def test_dropped_output_is_marked() -> None:
    box = outbox()
    cursor = Cursor(KEY, 1 << 30, box)
    cursor.write(job_pb2.STREAM_OUT, bytes(LOG_BYTES_QUEUED_MAX + 3 * CHUNK_BYTES_MAX))
    while box.next(0).messages:
        pass
    cursor.write(job_pb2.STREAM_OUT, b"after")
    lost, after = (message.log for message in box.next(0).messages)
    assert f"{3 * CHUNK_BYTES_MAX} bytes of output were lost here".encode() in lost.bytes
    assert lost.offset == LOG_BYTES_QUEUED_MAX + 3 * CHUNK_BYTES_MAX
    assert (after.bytes, after.offset) == (b"after", lost.offset + len(lost.bytes))


def test_the_first_reason_counts_unless_a_later_one_is_silent() -> None:
    stops, sooner = Stops(), list[float]()
    stops.on_sooner = sooner.append
    stops.ask(StopReason.PREEMPTED, "room", 5)
    stops.ask(StopReason.CANCELLED, "asked", 9)
    assert (stops.reason, stops.kill_at) == (StopReason.PREEMPTED, 5)
    stops.ask(StopReason.LEASE_OVER, "lease", 1)
    stops.ask(StopReason.CANCELLED, "asked", 2)
    assert (stops.reason, stops.text, sooner) == (StopReason.LEASE_OVER, "lease", [5, 1])


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        (None, job_pb2.ENDING_PERMANENT),
        (StopReason.CANCELLED, job_pb2.ENDING_CANCELLED),
        (StopReason.PREEMPTED, job_pb2.ENDING_PREEMPTED),
        (StopReason.TIMEOUT, job_pb2.ENDING_TIMEOUT),
        (StopReason.LEAVING, job_pb2.ENDING_REFUSED),
    ],
)
def test_success_counts_and_otherwise_the_stop_sets_the_ending(
    reason: StopReason | None, ending: int
) -> None:
    stopped = None if reason is None else (reason, "why")
    failed = Outcome(None, PermanentFailure("said"))
    assert completion(KEY, failed, stopped, 9).ending == ending
    done = completion(KEY, Outcome(Done(b"x")), stopped, 9)
    assert (done.ending, done.result) == (job_pb2.ENDING_SUCCEEDED, b"x")


def test_result_that_is_too_long_is_a_permanent_failure() -> None:
    end = completion(KEY, Outcome(Done(b"12345")), None, 4)
    assert end.ending == job_pb2.ENDING_PERMANENT
    assert end.error == "the result has 5 bytes of at most 4"


def test_errors_are_clean_and_short() -> None:
    end = completion(KEY, Outcome(None, Failure("a\0b\nc\x1b" + "ä" * TEXT_BYTES_MAX)), None, 4)
    assert end.error.startswith("a b\nc ää")
    assert TEXT_BYTES_MAX - 2 < len(end.error.encode()) <= TEXT_BYTES_MAX
    assert clean("a\nb", "") == "a b"


@pytest.mark.parametrize("is_over", [False, True])
def test_late_timer_reports_nothing_after_the_lease(is_over: bool) -> None:
    go, returned = threading.Event(), threading.Event()

    def handler(job: Attempt) -> None:
        assert go.wait(PATIENCE)

    door = Door("127.0.0.1:1", None, "")
    hello = wire.Hello(slots=1)
    settings = Settings(door, hello, {"a": Handles(0, handler)}, {}, {}, 1.0, 1.0)
    shared = Shared(settings, asyncio.new_event_loop())
    shared.cut = returned.set
    with shared.lock:
        shared.lease.welcome(time.monotonic(), 1000)
        offer = wire.Offer(job=KEY.job, attempt=KEY.attempt, spec=job_pb2.Spec(type="a"))
        assert offered(shared, offer)
        assert shared.attempts() == [KEY]
        if is_over:
            # No timer has it.
            shared.lease.over_at = time.monotonic()
    go.set()
    with shared.changed:
        assert shared.changed.wait_for(lambda: shared.roster.is_empty, PATIENCE)
        assert shared.outbox.unacknowledged == ([] if is_over else [KEY])
    assert returned.is_set() == is_over


def test_roster_admits_attempts_up_to_its_slots() -> None:
    roster = Roster(3)
    assert roster.admit("a", 2, 0) == ""
    assert roster.admit("a", 2, 0) == "at capacity"
    assert roster.admit("b", 1, 1) == ""
    roster.release("a", 2)
    assert roster.admit("b", 1, 1) == "at capacity"
    assert roster.admit("a", 2, 0) == ""
    roster.is_leaving = True
    assert roster.admit("a", 1, 0) == "draining"


def test_waits_double_up_to_the_longest_and_stay_within_half_of_it() -> None:
    waits = Waits(0.1, 1.0)
    for full in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        assert full / 2 <= waits.next() <= full
    waits.reset()
    assert waits.next() <= 0.1
