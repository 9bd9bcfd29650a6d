"""What the two clients have in common: questions, and how their answers are read. Nothing here
talks to anybody.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import grpc

from maitre import jobs
from maitre.door import Waits
from maitre.errors import Invalid, JobCancelled, JobFailed, TimedOut, Unavailable, from_rpc
from maitre.jobs import Change, Changed, Explanation, Job, State, Submitted
from maitre.spec import JobLike, Options, Payload, Spec, number
from maitre.v1 import detection_pb2, detection_pb2_grpc, jobs_pb2, jobs_pb2_grpc
from maitre.v1 import job_pb2 as wire

# The longest that one request waits for jobs, in seconds.
WAIT_MAX = 30.0

Value = TypeVar("Value")


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


@dataclass(frozen=True)
class Call(Generic[Value]):
    """A question: which method is asked, with what, and how its answer is read."""

    method: str
    request: object
    read: Callable[[Any], Value]


class Methods:
    """The methods of a scheduler, by name, over one channel."""

    def __init__(self, channel: grpc.Channel | grpc.aio.Channel) -> None:
        self._jobs = jobs_pb2_grpc.JobsStub(channel)
        self._detection = detection_pb2_grpc.DetectionStub(channel)

    def __getitem__(self, method: str) -> Callable[..., Any]:
        service = self._jobs if hasattr(self._jobs, method) else self._detection
        found: Callable[..., Any] = getattr(service, method)
        return found


def submit(
    specs: Iterable[Spec], idempotency_key: str | None, array: int = 0
) -> Call[list[Submitted]]:
    """Takes in jobs. The request has a key in any case, so that it may be sent twice."""
    key = idempotency_key or uuid.uuid4().hex
    wires = [spec.wire for spec in specs]
    request = jobs_pb2.SubmitRequest(jobs=wires, idempotency_key=key, array=array)
    return Call("Submit", request, lambda answer: [jobs.submitted(one) for one in answer.jobs])


def get(job: JobLike) -> Call[Job]:
    """A job with its attempts."""
    return Call("Get", jobs_pb2.GetRequest(id=number(job)), jobs.whole)


def page(filter: jobs_pb2.JobFilter, before: int) -> Call[tuple[list[Job], int]]:
    """Jobs, and where the next page begins; 0 if this is the last."""
    request = jobs_pb2.ListRequest(filter=filter, before=before)
    return Call("List", request, lambda page: (list(map(jobs.job, page.jobs)), page.next_before))


def explain(job: JobLike) -> Call[Explanation]:
    """Why a job waits."""
    return Call("Explain", jobs_pb2.ExplainRequest(id=number(job)), jobs.explanation)


def cancel(some: Iterable[JobLike]) -> Call[list[Changed]]:
    """Calls jobs off."""
    return Call("Cancel", jobs_pb2.CancelRequest(ids=numbers(some)), _changes)


def retry(some: Iterable[JobLike]) -> Call[list[Changed]]:
    """Takes jobs up again."""
    return Call("Retry", jobs_pb2.RetryRequest(ids=numbers(some)), _changes)


def _changes(answer: jobs_pb2.ChangeResponse) -> list[Changed]:
    return [jobs.changed(one) for one in answer.changes]


def detect(type: str) -> Call[bool]:
    """Whether a run is under way already."""
    request = detection_pb2.DetectRequest(type=type)
    return Call("Detect", request, lambda answer: bool(answer.is_running))


def runs(type: str) -> Call[list[Run]]:
    """The last looks for work of a type."""
    request = detection_pb2.RunsRequest(type=type)
    return Call("Runs", request, lambda answer: [_run(one) for one in answer.runs])


def set_type(type: str, values: Mapping[str, str]) -> Call[None]:
    """Changes what holds for a type."""
    request = detection_pb2.SetTypeRequest(type=type, values=values)
    return Call("SetType", request, lambda answer: None)


class Waiting:
    """Waiting for jobs, in requests that are not too long."""

    def __init__(self, some: Iterable[JobLike], timeout: float | None) -> None:
        self.ids = numbers(some)
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def call(self) -> Call[bool]:
        """Whether all are over by now."""
        left = WAIT_MAX if self._deadline is None else self._deadline - time.monotonic()
        ms = max(1, round(min(left, WAIT_MAX) * 1000))
        request = jobs_pb2.WaitRequest(ids=self.ids, timeout_ms=ms)
        return Call("Wait", request, lambda answer: bool(answer.all_final))

    def goes_on(self) -> None:
        """Raises `TimedOut` if the time is up."""
        if self._deadline is None or time.monotonic() < self._deadline:
            return
        which = ", ".join(str(id) for id in self.ids[:5]) + (", ..." if len(self.ids) > 5 else "")
        problem = f"not over after {self._timeout} s: {which}"
        raise TimedOut(problem, "ask why with `explain`")


class Trying:
    """Trying again for as long as patience lasts."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.went_well()

    def went_well(self) -> None:
        """There was an answer: patience is as long as before."""
        self._waits, self._since = Waits(), time.monotonic()

    def failed(self, error: grpc.RpcError) -> float:
        """How long to wait before the next try, in seconds; raises if there is to be none."""
        problem, wait = from_rpc(error), self._waits.next()
        is_over = time.monotonic() + wait > self._since + self._patience
        if not isinstance(problem, Unavailable) or is_over:
            raise problem from None
        return wait


class Watching:
    """Jobs that are watched until all are over."""

    def __init__(self, some: Iterable[JobLike]) -> None:
        self._open = set(numbers(some))

    @property
    def ids(self) -> list[int]:
        """Those that are not over yet."""
        return sorted(self._open)

    def saw(self, change: Change) -> bool:
        """Whether there is more to come after this."""
        if change.state.is_final:
            self._open.discard(change.id)
        return bool(self._open)


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


def _run(answer: detection_pb2.RunRecord) -> Run:
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
