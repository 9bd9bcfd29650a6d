"""A client for an event loop: the same as the one for threads, with coroutines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
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


class AsyncClient:
    """A client of a scheduler, for the running event loop.

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
        self._channel = self._door.async_channel()
        self._methods = ask.Methods(self._channel)

    async def submit(
        self,
        type: str | Spec,
        payload: Payload = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> Submitted:
        """Submits a job. It is durable when this returns."""
        spec = ask.one_spec(type, payload, options)
        return (await self.submit_all([spec], idempotency_key=idempotency_key))[0]

    async def submit_all(
        self, specs: Iterable[Spec], *, idempotency_key: str | None = None
    ) -> list[Submitted]:
        """Submits jobs: all of them, or none."""
        return await self._ask(ask.submit(specs, idempotency_key))

    async def submit_array(
        self, spec: Spec, n_jobs: int, *, idempotency_key: str | None = None
    ) -> list[Submitted]:
        """Submits one job `n_jobs` times, as a group."""
        return await self._ask(ask.submit([spec], idempotency_key, n_jobs))

    async def get(self, job: JobLike) -> Job:
        """The current state of a job, with its ended attempts."""
        return await self._ask(ask.get(job))

    async def jobs(
        self,
        *,
        tenant: str = "",
        type: str = "",
        states: Iterable[State] = (),
        labels: Mapping[str, str] | None = None,
        group: str = "",
        worker: str = "",
    ) -> AsyncIterator[Job]:
        """Jobs, newest first, without payloads and results. Reads pages on demand."""
        filter = ask.job_filter(
            tenant=tenant, type=type, states=states, labels=labels, group=group, worker=worker
        )
        found, before = await self._ask(ask.page(filter, 0))
        for one in found:
            yield one
        while before:
            found, before = await self._ask(ask.page(filter, before))
            for one in found:
                yield one

    async def wait(self, job: JobLike, timeout: float | None = None) -> Job:
        """Waits until the job is final. Raises `TimedOut` after `timeout` seconds."""
        return (await self.wait_all([job], timeout))[0]

    async def wait_all(self, some: Iterable[JobLike], timeout: float | None = None) -> list[Job]:
        """Waits until all of these jobs are final."""
        waiting = ask.Waiting(some, timeout)
        while not await self._ask(waiting.call()):
            waiting.goes_on()
        # A thousand results do not fit into one answer, so each job is read alone.
        return [await self.get(id) for id in waiting.ids]

    async def result(self, job: JobLike, timeout: float | None = None) -> Any:  # noqa: ANN401
        """Waits for the job and returns its result, parsed as JSON. Raises if it did not
        succeed."""
        return ask.result(await self.wait(job, timeout))

    async def watch(self, *some: JobLike) -> AsyncIterator[Change]:
        """The current state of these jobs, and every change of them, until all are final.

        Continues after a restart of the scheduler. It may skip a change during the restart, but
        never the last change of a job.
        """
        watching, trying = ask.Watching(some), ask.Trying(self._patience)
        while watching.ids:
            try:
                async for change in self._watched(watching.ids):
                    trying.went_well()
                    goes_on = watching.saw(change)
                    yield change
                    if not goes_on:
                        return
            except grpc.RpcError as error:
                await asyncio.sleep(trying.failed(error))

    async def watch_all(
        self,
        *,
        tenant: str = "",
        type: str = "",
        states: Iterable[State] = (),
        worker: str = "",
    ) -> AsyncIterator[Change]:
        """Every change of all jobs that match the filter, from now on, without an end."""
        filter = ask.job_filter(tenant=tenant, type=type, states=states, worker=worker)
        async for answer in self._stream("Watch", jobs_pb2.WatchRequest(filter=filter)):
            for one in answer.changes:
                yield jobs.change(one)

    async def explain(self, job: JobLike) -> Explanation:
        """Explains why the job waits, or why it was placed on its worker."""
        return await self._ask(ask.explain(job))

    async def cancel(self, *some: JobLike) -> list[Changed]:
        """Cancels jobs. Running attempts are stopped."""
        return await self._ask(ask.cancel(some))

    async def retry(self, *some: JobLike) -> list[Changed]:
        """Revives jobs that failed or were cancelled."""
        return await self._ask(ask.retry(some))

    async def logs(self, job: JobLike, *, follow: bool = False) -> AsyncIterator[LogPiece]:
        """The output of all attempts in order. With `follow`, until the job is final."""
        request = jobs_pb2.LogsRequest(id=number(job), follow=follow)
        async for answer in self._stream("Logs", request):
            for one in answer.pieces:
                yield jobs.piece(one)

    async def detect(self, type: str) -> bool:
        """Requests a detection of a type. `True` if a run of it is active."""
        return await self._ask(ask.detect(type))

    async def runs(self, type: str) -> list[ask.Run]:
        """The last runs of a type, newest first."""
        return await self._ask(ask.runs(type))

    async def set_type(self, type: str, values: Mapping[str, str]) -> None:
        """Changes settings of a type: a policy's field, `admin.FIELD` or `worker.FIELD`."""
        await self._ask(ask.set_type(type, values))

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _watched(self, ids: list[int]) -> AsyncIterator[Change]:
        request = jobs_pb2.WatchRequest(ids=ids)
        call = self._methods["Watch"](request, metadata=self._door.metadata)
        try:
            # The stream begins with its metadata. Earlier changes are read from the jobs.
            await call.initial_metadata()
            async for change in self._now(ids):
                yield change
            async for answer in call:
                if answer.missed:
                    async for change in self._now(ids):
                        yield change
                for one in answer.changes:
                    yield jobs.change(one)
        finally:
            call.cancel()

    async def _now(self, ids: list[int]) -> AsyncIterator[Change]:
        for id in ids:
            yield jobs.as_change(await self.get(id), datetime.now(timezone.utc))

    async def _stream(self, method: str, request: object) -> AsyncIterator[Any]:
        """A stream of answers, without retries."""
        call = self._methods[method](request, metadata=self._door.metadata)
        try:
            async for answer in call:
                yield answer
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            call.cancel()

    async def _ask(self, call: ask.Call[Value]) -> Value:
        """Sends a request, and retries it for `patience` seconds."""
        method, trying = self._methods[call.method], ask.Trying(self._patience)
        while True:
            try:
                return call.read(await method(call.request, metadata=self._door.metadata))
            except grpc.RpcError as error:
                await asyncio.sleep(trying.failed(error))
