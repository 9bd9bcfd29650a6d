"""How an attempt came out, and how the server is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from maitre.errors import MaitreError
from maitre.spec import Payload, encode
from maitre.v1 import job_pb2
from maitre.v1 import worker_pb2 as wire
from maitre.worker.stop import StopReason

# Bytes in what went wrong, and in a note about progress.
TEXT_BYTES_MAX = 8 << 10
# Bytes in what a job returns, if the server does not say.
RESULT_BYTES_MAX = 256 << 10


class Key(NamedTuple):
    """Which attempt: the job, and the number that is its fencing token."""

    job: int
    attempt: int

    @property
    def ref(self) -> wire.AttemptRef:
        """As the wire names it."""
        return wire.AttemptRef(job=self.job, attempt=self.attempt)


def key_of(ref: wire.AttemptRef) -> Key:
    """An attempt that the wire names."""
    return Key(ref.job, ref.attempt)


@dataclass(frozen=True)
class Done:
    """The job is done. A handler may also return its result alone."""

    result: Payload = None
    # What it cost; `None` means what was expected.
    cost: float | None = None
    exit_code: int | None = None


class Failure(MaitreError):
    """The job is not done, in a way that may pass: it is tried again. Every other exception that a
    handler raises means the same."""

    _ending = job_pb2.ENDING_TRANSIENT

    def __init__(
        self, message: str, *, exit_code: int | None = None, cost: float | None = None
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.cost = cost


class PermanentFailure(Failure):
    """The job is not done, in a way that will not pass: it has failed."""

    _ending = job_pb2.ENDING_PERMANENT


class TimeoutFailure(Failure):
    """The job took longer than it may: it is tried again."""

    _ending = job_pb2.ENDING_TIMEOUT


@dataclass(frozen=True)
class Outcome:
    """What a handler returned, or why it did not."""

    done: Done | None
    # Otherwise.
    failure: Failure = field(default_factory=lambda: Failure(""))


# A worker that leaves gives its jobs back: that is not their fault, and uses up no try.
_ENDINGS = {
    StopReason.CANCELLED: job_pb2.ENDING_CANCELLED,
    StopReason.PREEMPTED: job_pb2.ENDING_PREEMPTED,
    StopReason.TIMEOUT: job_pb2.ENDING_TIMEOUT,
    StopReason.LEAVING: job_pb2.ENDING_REFUSED,
    StopReason.STALE: job_pb2.ENDING_LOST,
    StopReason.LEASE_OVER: job_pb2.ENDING_LOST,
}


def outcome_of(call: Callable[[], object]) -> Outcome:
    """Calls, and says how it came out."""
    try:
        value = call()
    except Failure as failure:
        return Outcome(None, failure)
    except BaseException as error:
        said = f": {error}" if str(error) else ""
        return Outcome(None, Failure(f"{type(error).__name__}{said}"))
    return Outcome(value if isinstance(value, Done) else Done(value))


def completion(
    key: Key, outcome: Outcome, stopped: tuple[StopReason, str] | None, result_bytes_max: int
) -> wire.Complete:
    """What is done is done, even if somebody asked it to stop; otherwise the stop says how it
    ended."""
    if outcome.done is None:
        return _undone(key, outcome.failure, stopped)
    done = outcome.done
    try:
        result = None if done.result is None else encode(done.result)
    except (TypeError, ValueError) as error:
        return _undone(key, PermanentFailure(f"the result is not JSON: {error}"), stopped)
    if result is not None and len(result) > result_bytes_max:
        text = f"the result has {len(result)} bytes of at most {result_bytes_max}"
        failure = PermanentFailure(text, exit_code=done.exit_code, cost=done.cost)
        return _undone(key, failure, stopped)
    return wire.Complete(
        attempt=key.ref,
        ending=job_pb2.ENDING_SUCCEEDED,
        result=result,
        exit_code=done.exit_code,
        cost=done.cost,
    )


def lost(key: Key, error: str) -> wire.Complete:
    """An attempt that the server thinks we have, and that we do not have."""
    return wire.Complete(attempt=key.ref, ending=job_pb2.ENDING_LOST, error=error)


def _undone(key: Key, failure: Failure, stopped: tuple[StopReason, str] | None) -> wire.Complete:
    ending, error = failure._ending, failure.message
    if stopped is not None:
        reason, text = stopped
        # What a job said last helps those who wonder where its time went.
        says_more = reason is StopReason.TIMEOUT and error
        ending, error = _ENDINGS[reason], f"{text}\n{error}" if says_more else text
    return wire.Complete(
        attempt=key.ref,
        ending=ending,
        error=clean(error),
        exit_code=failure.exit_code,
        cost=failure.cost,
    )


def clean(text: str, keep: str = "\n\t") -> str:
    """Text that every store and terminal takes: short, and without control characters."""
    is_odd = {code: " " for code in [*range(32), *range(127, 160)] if chr(code) not in keep}
    text = text.translate(is_odd)
    return text.encode(errors="replace")[:TEXT_BYTES_MAX].decode(errors="ignore")
