"""A client for threads: each method returns when its answer has arrived."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, TypeVar

import grpc
from typing_extensions import Self, Unpack

from maitre import ask, jobs
from maitre.door import Door
from maitre.errors import from_rpc
from maitre.jobs import Change, Changed, Explanation, Job, LogPiece, State, Submitted
from maitre.spec import JobLike, Options, Payload, Spec, number
from maitre.v1 import jobs_pb2

Value = TypeVar("Value")


class Client:
    """A client of a scheduler. Many threads may use it at once.

    `address` is `host:port` or a URL (`https://` for TLS). The default is `MAITRE_SERVER`. The
    default of `token` is `MAITRE_TOKEN`. `ca` is a file of trusted certificates. If a scheduler
    cannot be reached, the client retries for `patience` seconds. A retry never repeats an effect.
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
        self._methods = ask.Methods(self._channel)

    def submit(
        self,
        type: str | Spec,
        payload: Payload = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> Submitted:
        """Submits a job. It is durable when this returns."""
        spec = ask.one_spec(type, payload, options)
        return self.submit_all([spec], idempotency_key=idempotency_key)[0]

    def submit_all(
        self, specs: Iterable[Spec], *, idempotency_key: str | None = None
    ) -> list[Submitted]:
        """Submits jobs: all of them, or none."""
        return self._ask(ask.submit(specs, idempotency_key))

    def submit_array(
        self, spec: Spec, n_jobs: int, *, idempotency_key: str | None = None
    ) -> list[Submitted]:
        """Submits one job `n_jobs` times, as a group."""
        return self._ask(ask.submit([spec], idempotency_key, n_jobs))

    def get(self, job: JobLike) -> Job:
        """The current state of a job, with its ended attempts."""
        return self._ask(ask.get(job))

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
        """Jobs, newest first, without payloads and results. Reads pages on demand."""
        filter = ask.job_filter(
            tenant=tenant, type=type, states=states, labels=labels, group=group, worker=worker
        )
        found, before = self._ask(ask.page(filter, 0))
        yield from found
        while before:
            found, before = self._ask(ask.page(filter, before))
            yield from found

    def wait(self, job: JobLike, timeout: float | None = None) -> Job:
        """Waits until the job is final. Raises `TimedOut` after `timeout` seconds."""
        return self.wait_all([job], timeout)[0]

    def wait_all(self, some: Iterable[JobLike], timeout: float | None = None) -> list[Job]:
        """Waits until all of these jobs are final."""
        waiting = ask.Waiting(some, timeout)
        while not self._ask(waiting.call()):
            waiting.goes_on()
        # A thousand results do not fit into one answer, so each job is read alone.
        return [self.get(id) for id in waiting.ids]

    def result(self, job: JobLike, timeout: float | None = None) -> Any:  # noqa: ANN401
        """Waits for the job and returns its result, parsed as JSON. Raises if it did not
        succeed."""
        return ask.result(self.wait(job, timeout))

    def watch(self, *some: JobLike) -> Iterator[Change]:
        """The current state of these jobs, and every change of them, until all are final.

        Continues after a restart of the scheduler. It may skip a change during the restart, but
        never the last change of a job.
        """
        watching, trying = ask.Watching(some), ask.Trying(self._patience)
        while watching.ids:
            try:
                for change in self._watched(watching.ids):
                    trying.went_well()
                    goes_on = watching.saw(change)
                    yield change
                    if not goes_on:
                        return
            except grpc.RpcError as error:
                time.sleep(trying.failed(error))

    def watch_all(
        self,
        *,
        tenant: str = "",
        type: str = "",
        states: Iterable[State] = (),
        worker: str = "",
    ) -> Iterator[Change]:
        """Every change of all jobs that match the filter, from now on, without an end."""
        filter = ask.job_filter(tenant=tenant, type=type, states=states, worker=worker)
        for answer in self._stream("Watch", jobs_pb2.WatchRequest(filter=filter)):
            yield from (jobs.change(one) for one in answer.changes)

    def explain(self, job: JobLike) -> Explanation:
        """Explains why the job waits, or why it was placed on its worker."""
        return self._ask(ask.explain(job))

    def cancel(self, *some: JobLike) -> list[Changed]:
        """Cancels jobs. Running attempts are stopped."""
        return self._ask(ask.cancel(some))

    def retry(self, *some: JobLike) -> list[Changed]:
        """Revives jobs that failed or were cancelled."""
        return self._ask(ask.retry(some))

    def logs(self, job: JobLike, *, follow: bool = False) -> Iterator[LogPiece]:
        """The output of all attempts in order. With `follow`, until the job is final."""
        request = jobs_pb2.LogsRequest(id=number(job), follow=follow)
        for answer in self._stream("Logs", request):
            yield from (jobs.piece(one) for one in answer.pieces)

    def detect(self, type: str) -> bool:
        """Requests a detection of a type. `True` if a run of it is active."""
        return self._ask(ask.detect(type))

    def runs(self, type: str) -> list[ask.Run]:
        """The last runs of a type, newest first."""
        return self._ask(ask.runs(type))

    def set_type(self, type: str, values: Mapping[str, str]) -> None:
        """Changes settings of a type: a policy's field, `admin.FIELD` or `worker.FIELD`."""
        self._ask(ask.set_type(type, values))

    def close(self) -> None:
        """Closes the connection."""
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
        request = jobs_pb2.WatchRequest(ids=ids)
        call = self._methods["Watch"](request, metadata=self._door.metadata)
        try:
            # The stream begins with its metadata. Earlier changes are read from the jobs.
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

    def _stream(self, method: str, request: object) -> Iterator[Any]:
        """A stream of answers, without retries."""
        call = self._methods[method](request, metadata=self._door.metadata)
        try:
            yield from call
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            call.cancel()

    def _ask(self, call: ask.Call[Value]) -> Value:
        """Sends a request, and retries it for `patience` seconds."""
        method, trying = self._methods[call.method], ask.Trying(self._patience)
        while True:
            try:
                return call.read(method(call.request, metadata=self._door.metadata))
            except grpc.RpcError as error:
                time.sleep(trying.failed(error))
