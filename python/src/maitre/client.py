"""A client for threads: each method asks, and returns when there is an answer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, TypeVar

import grpc
from typing_extensions import Self, Unpack

from maitre import ask, jobs
from maitre.door import Door, Waits
from maitre.errors import Unavailable, from_rpc
from maitre.jobs import Change, Changed, Explanation, Job, LogPiece, State, Submitted
from maitre.spec import JobLike, Options, Payload, Spec, number
from maitre.v1 import detection_pb2, detection_pb2_grpc, jobs_pb2, jobs_pb2_grpc

Request = TypeVar("Request")
Response = TypeVar("Response")


class Client:
    """Talks to a scheduler. May be used by many threads at once.

    `address` is `host:port` or a URL (`https://` for TLS), otherwise `MAITRE_SERVER`; `token` is
    otherwise `MAITRE_TOKEN`; `ca` is a file of certificates to trust. A scheduler that cannot be
    reached is tried again for `patience` seconds: nothing is done twice because of that.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        patience: float = 10.0,
    ) -> None:
        self._door = Door.at(address, token, ca)
        self._patience = patience
        self._channel = self._door.channel()
        self._jobs = jobs_pb2_grpc.JobsStub(self._channel)
        self._detection = detection_pb2_grpc.DetectionStub(self._channel)

    def submit(
        self,
        type: str | Spec,
        payload: Payload = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> Submitted:
        """Takes in a job. When this returns, it is on disk."""
        spec = ask.one_spec(type, payload, options)
        return self.submit_all([spec], idempotency_key=idempotency_key)[0]

    def submit_all(
        self, specs: Iterable[Spec], *, idempotency_key: str | None = None
    ) -> list[Submitted]:
        """Takes in jobs: all of them, or none."""
        request = ask.submission(specs, idempotency_key)
        return ask.submitted(self._call(self._jobs.Submit, request))

    def submit_array(
        self, spec: Spec, n_jobs: int, *, idempotency_key: str | None = None
    ) -> list[Submitted]:
        """Takes in one job so many times, as a group."""
        request = ask.submission([spec], idempotency_key, n_jobs)
        return ask.submitted(self._call(self._jobs.Submit, request))

    def get(self, job: JobLike) -> Job:
        """The job as it is now, with the attempts that ended."""
        return ask.got(self._call(self._jobs.Get, jobs_pb2.GetRequest(id=number(job))))

    def jobs(
        self,
        *,
        tenant: str = "",
        type: str = "",
        states: Iterable[State] = (),
        labels: Mapping[str, str] | None = None,
        group: str = "",
        worker: str = "",
    ) -> Iterator[Job]:
        """Jobs, newest first, without payloads and results; asks for pages as they are needed."""
        filter = ask.job_filter(
            tenant=tenant, type=type, states=states, labels=labels, group=group, worker=worker
        )
        request = jobs_pb2.ListRequest(filter=filter)
        while True:
            answer = self._call(self._jobs.List, request)
            yield from (jobs.job(one) for one in answer.jobs)
            request.before = answer.next_before
            if request.before == 0:
                return

    def wait(self, job: JobLike, timeout: float | None = None) -> Job:
        """Waits until the job is over, however it ended; raises `TimedOut` after `timeout` s."""
        return self.wait_all([job], timeout)[0]

    def wait_all(self, some: Iterable[JobLike], timeout: float | None = None) -> list[Job]:
        """Waits until all of these are over."""
        ids = ask.numbers(some)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = ask.WAIT_MAX if deadline is None else deadline - time.monotonic()
            ms = max(1, round(min(left, ask.WAIT_MAX) * 1000))
            request = jobs_pb2.WaitRequest(ids=ids, timeout_ms=ms)
            answer = self._call(self._jobs.Wait, request)
            if answer.all_final:
                # A thousand results do not fit into one answer: they are asked for one by one.
                return [self.get(id) for id in ids]
            if deadline is not None and time.monotonic() >= deadline:
                raise ask.still_running(ids, timeout)

    def result(self, job: JobLike, timeout: float | None = None) -> Any:  # noqa: ANN401
        """Waits for the job and returns its result, read as JSON; raises if it did not succeed."""
        return ask.result(self.wait(job, timeout))

    def watch(self, *some: JobLike) -> Iterator[Change]:
        """How these jobs are, and every change of them, until all are over.

        Survives a scheduler that restarts. A change that nobody could see is skipped, the last
        one of a job never.
        """
        open_ids = set(ask.numbers(some))
        waits, quiet_since = Waits(), time.monotonic()
        while open_ids:
            try:
                for change in self._watched(sorted(open_ids)):
                    waits.reset()
                    quiet_since = time.monotonic()
                    yield change
                    if change.state.is_final:
                        open_ids.discard(change.id)
                        if not open_ids:
                            return
            except grpc.RpcError as error:
                problem = from_rpc(error)
                is_over = time.monotonic() - quiet_since > self._patience
                if not isinstance(problem, Unavailable) or is_over:
                    raise problem from None
                time.sleep(waits.next())

    def watch_all(
        self,
        *,
        tenant: str = "",
        type: str = "",
        labels: Mapping[str, str] | None = None,
        group: str = "",
    ) -> Iterator[Change]:
        """Every change of all jobs that pass the filter, from now on, for as long as one looks."""
        filter = ask.job_filter(tenant=tenant, type=type, labels=labels, group=group)
        call = self._jobs.Watch(jobs_pb2.WatchRequest(filter=filter), metadata=self._door.metadata)
        try:
            for answer in call:
                yield from (jobs.change(one) for one in answer.changes)
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            call.cancel()

    def explain(self, job: JobLike) -> Explanation:
        """Why the job waits, or why it runs where it runs."""
        request = jobs_pb2.ExplainRequest(id=number(job))
        return jobs.explanation(self._call(self._jobs.Explain, request))

    def cancel(self, *some: JobLike) -> list[Changed]:
        """Calls jobs off; what runs is stopped."""
        request = jobs_pb2.CancelRequest(ids=ask.numbers(some))
        return [jobs.changed(one) for one in self._call(self._jobs.Cancel, request).changes]

    def retry(self, *some: JobLike) -> list[Changed]:
        """Takes up again jobs that failed or were cancelled."""
        request = jobs_pb2.RetryRequest(ids=ask.numbers(some))
        return [jobs.changed(one) for one in self._call(self._jobs.Retry, request).changes]

    def logs(self, job: JobLike, *, follow: bool = False) -> Iterator[LogPiece]:
        """Output of all attempts in order; with `follow`, more of it until the job is over."""
        request = jobs_pb2.LogsRequest(id=number(job), follow=follow)
        call = self._jobs.Logs(request, metadata=self._door.metadata)
        try:
            for answer in call:
                yield from (jobs.piece(one) for one in answer.pieces)
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            call.cancel()

    def detect(self, type: str) -> bool:
        """Looks for work of a type as soon as its lane is free; `True` if a run of it is on."""
        request = detection_pb2.DetectRequest(type=type)
        return self._call(self._detection.Detect, request).is_running

    def runs(self, type: str) -> list[ask.Run]:
        """The last looks for work of a type, newest first."""
        request = detection_pb2.RunsRequest(type=type)
        return [ask.run(one) for one in self._call(self._detection.Runs, request).runs]

    def set_type(self, type: str, values: Mapping[str, str]) -> None:
        """Changes what holds for a type: a policy's field, `admin.FIELD` or `worker.FIELD`."""
        request = detection_pb2.SetTypeRequest(type=type, values=values)
        self._call(self._detection.SetType, request)

    def close(self) -> None:
        """Hangs up."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _watched(self, ids: list[int]) -> Iterator[Change]:
        call = self._jobs.Watch(jobs_pb2.WatchRequest(ids=ids), metadata=self._door.metadata)
        try:
            # It looks from when it answers at all; what was before that is asked for.
            call.initial_metadata()
            yield from self._now(ids)
            for answer in call:
                if answer.missed:
                    yield from self._now(ids)
                yield from (jobs.change(one) for one in answer.changes)
        finally:
            call.cancel()

    def _now(self, ids: list[int]) -> Iterator[Change]:
        for id in ids:
            yield jobs.as_change(self.get(id), datetime.now(timezone.utc))

    def _call(self, rpc: Callable[..., Response], request: Request) -> Response:
        """Asks, again and again for as long as our patience lasts."""
        waits, deadline = Waits(), time.monotonic() + self._patience
        while True:
            try:
                return rpc(request, metadata=self._door.metadata)
            except grpc.RpcError as error:
                problem, wait = from_rpc(error), waits.next()
                is_over = time.monotonic() + wait > deadline
                if not isinstance(problem, Unavailable) or is_over:
                    raise problem from None
                time.sleep(wait)
