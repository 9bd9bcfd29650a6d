"""Requests and answers that the two clients have in common. Nothing here talks to anybody."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from maitre import jobs
from maitre.errors import Invalid, JobCancelled, JobFailed, TimedOut
from maitre.jobs import Job, State, Submitted
from maitre.spec import JobLike, Options, Payload, Spec, number
from maitre.v1 import detection_pb2, jobs_pb2
from maitre.v1 import job_pb2 as wire

# The longest that one request waits for jobs, in seconds.
WAIT_MAX = 30.0


@dataclass(frozen=True)
class Run:
    """One look for work, with what came of it."""

    run: str
    type: str
    # `succeeded`, `failed` or `out-of-time`.
    status: str
    started_at: datetime
    ended_at: datetime
    # Somebody asked for it.
    asked: bool
    worker: str
    error: str
    # Proposals that came, that became jobs, and that were refused, by reason.
    proposed: int
    taken: int
    refused: Mapping[str, int]
    # What became of the jobs.
    succeeded: int
    failed: int
    cancelled: int


def submission(
    specs: Iterable[Spec], idempotency_key: str | None, array: int = 0
) -> jobs_pb2.SubmitRequest:
    """A submission. It has a key in any case, so that it may be sent twice."""
    key = idempotency_key or uuid.uuid4().hex
    wires = [spec.wire for spec in specs]
    return jobs_pb2.SubmitRequest(jobs=wires, idempotency_key=key, array=array)


def submitted(answer: jobs_pb2.SubmitResponse) -> list[Submitted]:
    """The jobs that were taken in, in the order in which they were given."""
    return [Submitted(one.id, one.is_new, jobs.state(one.state)) for one in answer.jobs]


def one_spec(type: str | Spec, payload: Payload, options: Options) -> Spec:
    """A job to submit, however it was given."""
    if not isinstance(type, Spec):
        return Spec(type, payload, **options)
    if payload is not None or options:
        raise TypeError("a Spec says everything: give no payload and no options beside it")
    return type


def numbers(some: Iterable[JobLike]) -> list[int]:
    """Ids of jobs."""
    return [number(job) for job in some]


def got(answer: jobs_pb2.GetResponse) -> Job:
    """A job with its attempts."""
    return jobs.job(answer.job, tuple(jobs.attempted(one) for one in answer.attempts))


def job_filter(
    *,
    tenant: str = "",
    type: str = "",
    states: Iterable[State] = (),
    labels: Mapping[str, str] | None = None,
    group: str = "",
    worker: str = "",
) -> jobs_pb2.JobFilter:
    """What is empty does not filter."""
    values = [wire.State.Value(f"STATE_{one.name}") for one in states]
    return jobs_pb2.JobFilter(
        tenant=tenant, type=type, states=values, labels=labels or {}, group=group, worker=worker
    )


def still_running(ids: list[int], timeout: float | None) -> TimedOut:
    """The time is up and not all of these are over."""
    which = ", ".join(str(id) for id in ids[:5]) + (", ..." if len(ids) > 5 else "")
    return TimedOut(f"not over after {timeout} s: {which}", "ask why with `explain`")


def result(job: Job) -> object:
    """What a job returned, read as JSON; raises if it did not succeed."""
    if job.state is State.CANCELLED:
        raise JobCancelled(job)
    if job.state is not State.SUCCEEDED:
        raise JobFailed(job)
    try:
        return job.json()
    except ValueError as error:
        raise Invalid(f"the result of job {job.id} is not JSON: {error}", "use `get`") from None


def run(answer: detection_pb2.RunRecord) -> Run:
    """A run of the wire."""
    return Run(
        run=answer.run,
        type=answer.type,
        status=answer.status,
        started_at=jobs.at(answer.started_ms),
        ended_at=jobs.at(answer.ended_ms),
        asked=answer.asked,
        worker=answer.worker,
        error=answer.error,
        proposed=answer.proposed,
        taken=answer.taken,
        refused=dict(answer.refused),
        succeeded=answer.succeeded,
        failed=answer.failed,
        cancelled=answer.cancelled,
    )
