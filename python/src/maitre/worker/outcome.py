"""Outcomes of attempts, and their completions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from maitre.errors import MaitreError
from maitre.spec import Payload, encode
from maitre.v1 import job_pb2
from maitre.v1 import worker_pb2 as wire
from maitre.worker.stop import StopReason

# Bytes in an error message, and in a note about progress.
TEXT_BYTES_MAX = 8 << 10
# Bytes in a result, if the server sets no limit.
RESULT_BYTES_MAX = 256 << 10


class Key(NamedTuple):
    """The job and the number of the attempt. Together they are its fencing token."""

    job: int
    attempt: int

    @property
    def ref(self) -> wire.AttemptRef:
        """The attempt as a protobuf message."""
        return wire.AttemptRef(job=self.job, attempt=self.attempt)


def key_of(ref: wire.AttemptRef) -> Key:
    """Converts an attempt from protobuf."""
    return Key(ref.job, ref.attempt)


@dataclass(frozen=True)
class Done:
    """The job succeeded. A handler may also return its result alone."""

    result: Payload = None
    # The cost. `None` means the expected cost.
    cost: float | None = None
    exit_code: int | None = None


class Failure(MaitreError):
    """A transient failure: the job is retried. All other exceptions of a handler mean the same."""

    _ending = job_pb2.ENDING_TRANSIENT

    def __init__(
        self, message: str, *, exit_code: int | None = None, cost: float | None = None
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.cost = cost


class PermanentFailure(Failure):
    """A permanent failure: the job fails."""

    _ending = job_pb2.ENDING_PERMANENT


class TimeoutFailure(Failure):
    """A timeout: the job is retried."""

    _ending = job_pb2.ENDING_TIMEOUT


@dataclass(frozen=True)
class Outcome:
    """The return value of a handler, or its failure."""

    done: Done | None
    # Used if `done` is `None`.
    failure: Failure = field(default_factory=lambda: Failure(""))


# A worker that leaves gives its jobs back, which uses up no try.
_ENDINGS = {
    StopReason.CANCELLED: job_pb2.ENDING_CANCELLED,
    StopReason.PREEMPTED: job_pb2.ENDING_PREEMPTED,
    StopReason.TIMEOUT: job_pb2.ENDING_TIMEOUT,
    StopReason.LEAVING: job_pb2.ENDING_REFUSED,
    StopReason.STALE: job_pb2.ENDING_LOST,
    StopReason.LEASE_OVER: job_pb2.ENDING_LOST,
}


def outcome_of(call: Callable[[], object]) -> Outcome:
    """Calls a handler, and returns the outcome."""
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
    """A success counts even if the attempt should stop. Otherwise the stop reason sets the
    ending."""
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
    """The completion of an attempt that the server expects here, and that the worker does not
    have."""
    return wire.Complete(attempt=key.ref, ending=job_pb2.ENDING_LOST, error=error)


def _undone(key: Key, failure: Failure, stopped: tuple[StopReason, str] | None) -> wire.Complete:
    ending, error = failure._ending, failure.message
    if stopped is not None:
        reason, text = stopped
        # The last output of an attempt that timed out may show where its time went.
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
    """A short text without control characters."""
    is_odd = {code: " " for code in [*range(32), *range(127, 160)] if chr(code) not in keep}
    text = text.translate(is_odd)
    return text.encode(errors="replace")[:TEXT_BYTES_MAX].decode(errors="ignore")
