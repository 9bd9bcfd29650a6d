"""Jobs and their results, as the scheduler reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from maitre.spec import decode
from maitre.v1 import job_pb2 as wire
from maitre.v1 import jobs_pb2


class State(str, Enum):
    """The state of a job."""

    BLOCKED = "blocked"
    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    # From a server that is newer than this package.
    UNKNOWN = "unknown"

    @property
    def is_final(self) -> bool:
        """Whether the state is final."""
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)

    def __str__(self) -> str:
        return self.value


class Ending(str, Enum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    LOST = "lost"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    STALE = "stale"
    # From a server that is newer than this package.
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Progress:
    """The progress of a job: from 0 to 1, a note, and the name of the current step."""

    fraction: float
    note: str = ""
    stage: str = ""


@dataclass(frozen=True)
class Submitted:
    """A submitted job. It is durable."""

    id: int
    # False if an earlier submission had the same key, or if it joined an unfinished job.
    is_new: bool
    state: State


@dataclass(frozen=True)
class Attempted:
    """An attempt that ended."""

    number: int
    worker: str
    claimed_at: datetime
    started_at: datetime | None
    ended_at: datetime
    ending: Ending
    error: str
    exit_code: int | None
    # The explanation of its placement: points of each rule.
    why: str


@dataclass(frozen=True)
class Job:
    """A job over its whole life, at the time of the request."""

    id: int
    type: str
    tenant: str
    state: State
    priority: int
    labels: Mapping[str, str]
    payload: bytes
    # The result. `None` if there is none.
    result: bytes | None
    error: str
    # The cause of a failure: `exhausted`, `permanent`, `poison`, `asked`, ...
    cause: str
    exit_code: int | None
    # The worker of its live or last attempt.
    worker: str
    progress: Progress | None
    n_attempts: int
    n_failures: int
    n_losses: int
    on_hold: bool
    is_cancelling: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    # Ended attempts, only in the answer to `get`.
    attempts: tuple[Attempted, ...] = ()

    def json(self) -> Any:  # noqa: ANN401
        """The result, parsed as JSON. `None` if there is none."""
        return decode(self.result)


@dataclass(frozen=True)
class Change:
    """A change of a job."""

    id: int
    state: State
    type: str
    tenant: str
    worker: str
    progress: Progress | None
    at: datetime


@dataclass(frozen=True)
class Check:
    """One of the hold reasons that apply to a waiting job."""

    # Its permanent name.
    code: str
    # The evidence and the remedy.
    detail: str
    # The numbers of the evidence, by name.
    numbers: dict[str, float]
    # Jobs, workers and tenants that the evidence names.
    jobs: list[int]
    workers: list[str]
    tenants: list[str]


@dataclass(frozen=True)
class NearWorker:
    """A worker, and the requirements of a job that it lacks."""

    worker: str
    lacks: list[str]


@dataclass(frozen=True)
class Explanation:
    """An explanation of a job's wait or placement."""

    id: int
    state: State
    # The name of the hold reason. Empty if it does not wait.
    reason: str
    # The evidence and the remedy.
    detail: str
    # Jobs that would go before it. `None` if it is not in a queue.
    ahead: int | None
    # The placement of its live or last attempt, with the points of each rule.
    why_there: str
    # An estimate of the time until its start, in seconds, and its basis.
    starts_in: float | None
    estimate_basis: str
    # The range of that estimate, in seconds. `None` where unknown.
    starts_in_min: float | None = None
    starts_in_max: float | None = None
    # All hold reasons that apply, in order, beginning with `reason`.
    checks: list[Check] = field(default_factory=list)
    # If it waits for a worker: the workers that lack the least.
    nearest: list[NearWorker] = field(default_factory=list)

    def __str__(self) -> str:
        first = f"job {self.id} is {self.state}"
        if self.reason:
            first += f": {self.reason}"
        return "\n".join(line for line in (first, self.detail, self.why_there) if line)


@dataclass(frozen=True)
class Changed:
    """The effect of a request on one job."""

    id: int
    changed: bool
    state: State
    # The reason if nothing changed, in words.
    problem: str


@dataclass(frozen=True)
class LogPiece:
    """Output of one attempt."""

    attempt: int
    # `out` or `err`.
    stream: str
    offset: int
    at: datetime
    bytes: bytes


def state(value: int) -> State:
    """Converts a state from protobuf."""
    name = wire.State.DESCRIPTOR.values_by_number.get(value)
    return _STATES.get(name.name if name else "", State.UNKNOWN)


def ending(value: int) -> Ending:
    """Converts an ending from protobuf."""
    name = wire.Ending.DESCRIPTOR.values_by_number.get(value)
    return _ENDINGS.get(name.name if name else "", Ending.UNKNOWN)


_STATES = {f"STATE_{one.name}": one for one in State}
_ENDINGS = {f"ENDING_{one.name}": one for one in Ending}


def at(ms: int) -> datetime:
    """Converts a time from protobuf."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


def job(answer: wire.Job, attempts: tuple[Attempted, ...] = ()) -> Job:
    """Converts a job from protobuf."""
    spec, counts = answer.spec, answer.counts
    return Job(
        id=answer.id,
        type=spec.type,
        tenant=spec.tenant,
        state=state(answer.state),
        priority=answer.priority,
        labels=dict(spec.labels),
        payload=spec.payload,
        result=answer.result if answer.HasField("result") else None,
        error=answer.error,
        cause=answer.cause,
        exit_code=answer.exit_code if answer.HasField("exit_code") else None,
        worker=answer.worker,
        progress=_progress(answer),
        n_attempts=counts.attempts,
        n_failures=counts.failures,
        n_losses=counts.losses,
        on_hold=answer.on_hold,
        is_cancelling=answer.cancelling,
        created_at=at(answer.created_ms),
        started_at=at(answer.started_ms) if answer.HasField("started_ms") else None,
        finished_at=at(answer.finished_ms) if answer.HasField("finished_ms") else None,
        attempts=attempts,
    )


def whole(answer: jobs_pb2.GetResponse) -> Job:
    """Converts a job with its attempts from protobuf."""
    return job(answer.job, tuple(attempted(one) for one in answer.attempts))


def submitted(answer: jobs_pb2.Submitted) -> Submitted:
    """Converts a submitted job from protobuf."""
    return Submitted(answer.id, answer.is_new, state(answer.state))


def attempted(answer: jobs_pb2.Attempt) -> Attempted:
    """Converts an attempt from protobuf."""
    return Attempted(
        number=answer.number,
        worker=answer.worker,
        claimed_at=at(answer.claimed_ms),
        started_at=at(answer.started_ms) if answer.HasField("started_ms") else None,
        ended_at=at(answer.ended_ms),
        ending=ending(answer.ending),
        error=answer.error,
        exit_code=answer.exit_code if answer.HasField("exit_code") else None,
        why=answer.why,
    )


def change(answer: jobs_pb2.JobChange) -> Change:
    """Converts a change from protobuf."""
    return Change(
        id=answer.id,
        state=state(answer.state),
        type=answer.type,
        tenant=answer.tenant,
        worker=answer.worker,
        progress=_progress(answer),
        at=at(answer.at_ms),
    )


def as_change(job: Job, now: datetime) -> Change:
    """The current state of a job as a change."""
    return Change(job.id, job.state, job.type, job.tenant, job.worker, job.progress, now)


def _check(answer: jobs_pb2.Check) -> Check:
    return Check(
        code=answer.code,
        detail=answer.detail,
        numbers=dict(answer.numbers),
        jobs=list(answer.jobs),
        workers=list(answer.workers),
        tenants=list(answer.tenants),
    )


def explanation(answer: jobs_pb2.ExplainResponse) -> Explanation:
    """Converts an explanation from protobuf."""
    has, least, most = answer.HasField, answer.starts_in_min_ms, answer.starts_in_max_ms
    return Explanation(
        id=answer.id,
        state=state(answer.state),
        reason=answer.reason,
        detail=answer.detail,
        ahead=answer.ahead if answer.HasField("ahead") else None,
        why_there=answer.why_there,
        starts_in=answer.starts_in_ms / 1000 if has("starts_in_ms") else None,
        estimate_basis=answer.estimate_basis,
        starts_in_min=least / 1000 if has("starts_in_min_ms") else None,
        starts_in_max=most / 1000 if has("starts_in_max_ms") else None,
        checks=[_check(check) for check in answer.checks],
        nearest=[NearWorker(near.worker, list(near.lacks)) for near in answer.nearest],
    )


def changed(answer: jobs_pb2.Change) -> Changed:
    """Converts the effect of a request from protobuf."""
    return Changed(answer.id, answer.changed, state(answer.state), answer.problem)


def piece(answer: jobs_pb2.LogPiece) -> LogPiece:
    """Converts output from protobuf."""
    stream = "err" if answer.stream == wire.STREAM_ERR else "out"
    return LogPiece(answer.attempt, stream, answer.offset, at(answer.at_ms), answer.bytes)


def _progress(answer: wire.Job | jobs_pb2.JobChange) -> Progress | None:
    if not answer.HasField("progress"):
        return None
    said = answer.progress
    return Progress(said.fraction, said.note, said.stage)
