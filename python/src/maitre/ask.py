"""The common part of the two clients: requests, and the parsers of their answers. This module does
no I/O."""

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

# The longest wait of one request, in seconds.
WAIT_MAX = 30.0

Value = TypeVar("Value")


@dataclass(frozen=True)
class Run:
    """One detection, with the results of its jobs."""

    run: str
    type: str
    # `succeeded`, `failed` or `out-of-time`.
    status: str
    started_at: datetime
    ended_at: datetime
    # A user requested it.
    asked: bool
    worker: str
    error: str
    # Proposals that were received, that became jobs, and that were rejected, by reason.
    proposed: int
    taken: int
    refused: Mapping[str, int]
    # The endings of the jobs.
    succeeded: int
    failed: int
    cancelled: int


@dataclass(frozen=True)
class Call(Generic[Value]):
    """A request: its method, its message, and the parser of its answer."""

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
    """Submits jobs. The request always has a key, so that a retry has no further effect."""
    key = idempotency_key or uuid.uuid4().hex
    wires = [spec.wire for spec in specs]
    request = jobs_pb2.SubmitRequest(jobs=wires, idempotency_key=key, array=array)
    return Call("Submit", request, lambda answer: [jobs.submitted(one) for one in answer.jobs])


def get(job: JobLike) -> Call[Job]:
    """A job with its attempts."""
    return Call("Get", jobs_pb2.GetRequest(id=number(job)), jobs.whole)


def page(filter: jobs_pb2.JobFilter, before: int) -> Call[tuple[list[Job], int]]:
    """Jobs, and the start of the next page. 0 if this is the last."""
    request = jobs_pb2.ListRequest(filter=filter, before=before)
    return Call("List", request, lambda page: (list(map(jobs.job, page.jobs)), page.next_before))


def explain(job: JobLike) -> Call[Explanation]:
    """Explains why a job waits."""
    return Call("Explain", jobs_pb2.ExplainRequest(id=number(job)), jobs.explanation)


def cancel(some: Iterable[JobLike]) -> Call[list[Changed]]:
    """Cancels jobs."""
    return Call("Cancel", jobs_pb2.CancelRequest(ids=numbers(some)), _changes)


def retry(some: Iterable[JobLike]) -> Call[list[Changed]]:
    """Revives jobs."""
    return Call("Retry", jobs_pb2.RetryRequest(ids=numbers(some)), _changes)


def _changes(answer: jobs_pb2.ChangeResponse) -> list[Changed]:
    return [jobs.changed(one) for one in answer.changes]


def detect(type: str) -> Call[bool]:
    """Requests a detection. The answer is whether a run is active already."""
    request = detection_pb2.DetectRequest(type=type)
    return Call("Detect", request, lambda answer: bool(answer.is_running))


def runs(type: str) -> Call[list[Run]]:
    """The last runs of a type."""
    request = detection_pb2.RunsRequest(type=type)
    return Call("Runs", request, lambda answer: [_run(one) for one in answer.runs])


def set_type(type: str, values: Mapping[str, str]) -> Call[None]:
    """Changes settings of a type."""
    request = detection_pb2.SetTypeRequest(type=type, values=values)
    return Call("SetType", request, lambda answer: None)


class Waiting:
    """A wait for jobs, in several requests of limited duration."""

    def __init__(self, some: Iterable[JobLike], timeout: float | None) -> None:
        self.ids = numbers(some)
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def call(self) -> Call[bool]:
        """The request: whether all jobs are final."""
        left = WAIT_MAX if self._deadline is None else self._deadline - time.monotonic()
        ms = max(1, round(min(left, WAIT_MAX) * 1000))
        request = jobs_pb2.WaitRequest(ids=self.ids, timeout_ms=ms)
        return Call("Wait", request, lambda answer: bool(answer.all_final))

    def goes_on(self) -> None:
        """Raises `TimedOut` after the timeout."""
        if self._deadline is None or time.monotonic() < self._deadline:
            return
        which = ", ".join(str(id) for id in self.ids[:5]) + (", ..." if len(self.ids) > 5 else "")
        problem = f"not over after {self._timeout} s: {which}"
        raise TimedOut(problem, "ask why with `explain`")


class Trying:
    """Retries for a limited time."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.went_well()

    def went_well(self) -> None:
        """Resets the time after an answer."""
        self._waits, self._since = Waits(), time.monotonic()

    def failed(self, error: grpc.RpcError) -> float:
        """The wait before the next try, in seconds. Raises if there is none."""
        problem, wait = from_rpc(error), self._waits.next()
        is_over = time.monotonic() + wait > self._since + self._patience
        if not isinstance(problem, Unavailable) or is_over:
            raise problem from None
        return wait


class Watching:
    """Watched jobs, until all are final."""

    def __init__(self, some: Iterable[JobLike]) -> None:
        self._open = set(numbers(some))

    @property
    def ids(self) -> list[int]:
        """The jobs that are not final yet."""
        return sorted(self._open)

    def saw(self, change: Change) -> bool:
        """Whether more changes follow this one."""
        if change.state.is_final:
            self._open.discard(change.id)
        return bool(self._open)


def one_spec(type: str | Spec, payload: Payload, options: Options) -> Spec:
    """The specification of a job, from either form of arguments."""
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
    """A filter. Empty arguments do not filter."""
    values = [wire.State.Value(f"STATE_{one.name}") for one in states]
    return jobs_pb2.JobFilter(
        tenant=tenant, type=type, states=values, labels=labels or {}, group=group, worker=worker
    )


def result(job: Job) -> object:
    """The result of a job, parsed as JSON. Raises if the job did not succeed."""
    if job.state is State.CANCELLED:
        raise JobCancelled(job)
    if job.state is not State.SUCCEEDED:
        raise JobFailed(job)
    try:
        return job.json()
    except ValueError as error:
        raise Invalid(f"the result of job {job.id} is not JSON: {error}", "use `get`") from None


def _run(answer: detection_pb2.RunRecord) -> Run:
    """Converts a run from protobuf."""
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
