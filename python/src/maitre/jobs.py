"""Jobs, and what becomes of them, as the scheduler tells it."""

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
    """What a job is."""

    BLOCKED = "blocked"
    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    # Of a server that is newer than we are.
    UNKNOWN = "unknown"

    @property
    def is_final(self) -> bool:
        """Whether nothing follows by itself."""
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
    # Of a server that is newer than we are.
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Progress:
    """How far a job is: from 0 to 1, in words, and which of its steps it is at."""

    fraction: float
    note: str = ""
    stage: str = ""


@dataclass(frozen=True)
class Submitted:
    """A job that was taken in. It is on disk."""

    id: int
    # Not if it was submitted before under the same key, or joined an unfinished job.
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
    # Why it was placed there: points per rule.
    why: str


@dataclass(frozen=True)
class Job:
    """A job over its whole life, as it was when it was asked about."""

    id: int
    type: str
    tenant: str
    state: State
    priority: int
    labels: Mapping[str, str]
    payload: bytes
    # What it returned; `None` if it returned nothing, or is not done.
    result: bytes | None
    error: str
    # Why it did not succeed: `exhausted`, `permanent`, `poison`, `asked`, ...
    cause: str
    exit_code: int | None
    # Where it runs, or last ran.
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
    # Attempts that ended; only in the answer to `get`.
    attempts: tuple[Attempted, ...] = ()

    def json(self) -> Any:  # noqa: ANN401
        """What it returned, read as JSON; `None` if it returned nothing."""
        return decode(self.result)


@dataclass(frozen=True)
class Change:
    """Something about a job changed."""

    id: int
    state: State
    type: str
    tenant: str
    worker: str
    progress: Progress | None
    at: datetime


@dataclass(frozen=True)
class Check:
    """One of the reasons that apply to a waiting job."""

    # Its permanent name.
    code: str
    # The evidence, and what would change it.
    detail: str
    # What the evidence counts, by name.
    numbers: dict[str, float]
    # Jobs, workers and tenants that the evidence names.
    jobs: list[int]
    workers: list[str]
    tenants: list[str]


@dataclass(frozen=True)
class NearWorker:
    """A worker, and what keeps a job from it."""

    worker: str
    lacks: list[str]


@dataclass(frozen=True)
class Explanation:
    """Why a job waits, or why it runs where it runs."""

    id: int
    state: State
    # The one reason why it waits, by its permanent name; empty if it does not wait.
    reason: str
    # The evidence, and what would change it.
    detail: str
    # Jobs that would go before it; `None` if it does not stand in line.
    ahead: int | None
    # If it runs, or ran: where, and the points of each rule.
    why_there: str
    # An estimate of when it starts, in seconds, and what it rests on.
    starts_in: float | None
    estimate_basis: str
    # The range of that estimate, in seconds; `None` where it is not known.
    starts_in_min: float | None = None
    starts_in_max: float | None = None
    # All reasons that apply, the one above first.
    checks: list[Check] = field(default_factory=list)
    # If workers are what it waits for: those that lack least.
    nearest: list[NearWorker] = field(default_factory=list)

    def __str__(self) -> str:
        first = f"job {self.id} is {self.state}"
        if self.reason:
            first += f": {self.reason}"
        return "\n".join(line for line in (first, self.detail, self.why_there) if line)


@dataclass(frozen=True)
class Changed:
    """What a request did to one job."""

    id: int
    changed: bool
    state: State
    # Why not, in words.
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
    """A state of the wire."""
    name = wire.State.DESCRIPTOR.values_by_number.get(value)
    return _STATES.get(name.name if name else "", State.UNKNOWN)


def ending(value: int) -> Ending:
    """An ending of the wire."""
    name = wire.Ending.DESCRIPTOR.values_by_number.get(value)
    return _ENDINGS.get(name.name if name else "", Ending.UNKNOWN)


_STATES = {f"STATE_{one.name}": one for one in State}
_ENDINGS = {f"ENDING_{one.name}": one for one in Ending}


def at(ms: int) -> datetime:
    """A moment of the wire."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


def job(answer: wire.Job, attempts: tuple[Attempted, ...] = ()) -> Job:
    """A job of the wire."""
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
    """A job of the wire, with its attempts."""
    return job(answer.job, tuple(attempted(one) for one in answer.attempts))


def submitted(answer: jobs_pb2.Submitted) -> Submitted:
    """A job that was taken in, from the wire."""
    return Submitted(answer.id, answer.is_new, state(answer.state))


def attempted(answer: jobs_pb2.Attempt) -> Attempted:
    """An attempt of the wire."""
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
    """A change of the wire."""
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
    """How a job is, as if it had just become so."""
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
    """An explanation of the wire."""
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
    """What a request did, from the wire."""
    return Changed(answer.id, answer.changed, state(answer.state), answer.problem)


def piece(answer: jobs_pb2.LogPiece) -> LogPiece:
    """Output, from the wire."""
    stream = "err" if answer.stream == wire.STREAM_ERR else "out"
    return LogPiece(answer.attempt, stream, answer.offset, at(answer.at_ms), answer.bytes)


def _progress(answer: wire.Job | jobs_pb2.JobChange) -> Progress | None:
    if not answer.HasField("progress"):
        return None
    said = answer.progress
    return Progress(said.fraction, said.note, said.stage)
