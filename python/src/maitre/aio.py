"""A client for an event loop: the same as the one for threads, to be awaited."""

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
    """Talks to a scheduler from the event loop that it is made in.

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
        """Takes in a job. When this returns, it is on disk."""
        spec = ask.one_spec(type, payload, options)
        return (await self.submit_all([spec], idempotency_key=idempotency_key))[0]

    async def submit_all(
        self, specs: Iterable[Spec], *, idempotency_key: str | None = None
    ) -> list[Submitted]:
        """Takes in jobs: all of them, or none."""
        return await self._ask(ask.submit(specs, idempotency_key))

    async def submit_array(
        self, spec: Spec, n_jobs: int, *, idempotency_key: str | None = None
    ) -> list[Submitted]:
        """Takes in one job so many times, as a group."""
        return await self._ask(ask.submit([spec], idempotency_key, n_jobs))

    async def get(self, job: JobLike) -> Job:
        """The job as it is now, with the attempts that ended."""
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
        """Jobs, newest first, without payloads and results; asks for pages as they are needed."""
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
        """Waits until the job is over, however it ended; raises `TimedOut` after `timeout` s."""
        return (await self.wait_all([job], timeout))[0]

    async def wait_all(self, some: Iterable[JobLike], timeout: float | None = None) -> list[Job]:
        """Waits until all of these are over."""
        waiting = ask.Waiting(some, timeout)
        while not await self._ask(waiting.call()):
            waiting.goes_on()
        # A thousand results do not fit into one answer: they are asked for one by one.
        return [await self.get(id) for id in waiting.ids]

    async def result(self, job: JobLike, timeout: float | None = None) -> Any:  # noqa: ANN401
        """Waits for the job and returns its result, read as JSON; raises if it did not succeed."""
        return ask.result(await self.wait(job, timeout))

    async def watch(self, *some: JobLike) -> AsyncIterator[Change]:
        """How these jobs are, and every change of them, until all are over.

        Survives a scheduler that restarts. A change that nobody could see is skipped, the last
        one of a job never.
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
        """Every change of all jobs that pass the filter, from now on, for as long as one looks."""
        filter = ask.job_filter(tenant=tenant, type=type, states=states, worker=worker)
        async for answer in self._stream("Watch", jobs_pb2.WatchRequest(filter=filter)):
            for one in answer.changes:
                yield jobs.change(one)

    async def explain(self, job: JobLike) -> Explanation:
        """Why the job waits, or why it runs where it runs."""
        return await self._ask(ask.explain(job))

    async def cancel(self, *some: JobLike) -> list[Changed]:
        """Calls jobs off; what runs is stopped."""
        return await self._ask(ask.cancel(some))

    async def retry(self, *some: JobLike) -> list[Changed]:
        """Takes up again jobs that failed or were cancelled."""
        return await self._ask(ask.retry(some))

    async def logs(self, job: JobLike, *, follow: bool = False) -> AsyncIterator[LogPiece]:
        """Output of all attempts in order; with `follow`, more of it until the job is over."""
        request = jobs_pb2.LogsRequest(id=number(job), follow=follow)
        async for answer in self._stream("Logs", request):
            for one in answer.pieces:
                yield jobs.piece(one)

    async def detect(self, type: str) -> bool:
        """Looks for work of a type as soon as its lane is free; `True` if a run of it is on."""
        return await self._ask(ask.detect(type))

    async def runs(self, type: str) -> list[ask.Run]:
        """The last looks for work of a type, newest first."""
        return await self._ask(ask.runs(type))

    async def set_type(self, type: str, values: Mapping[str, str]) -> None:
        """Changes what holds for a type: a policy's field, `admin.FIELD` or `worker.FIELD`."""
        await self._ask(ask.set_type(type, values))

    async def close(self) -> None:
        """Hangs up."""
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
            # It looks from when it answers at all; what was before that is asked for.
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
        """Answers as they come; they are not asked for again."""
        call = self._methods[method](request, metadata=self._door.metadata)
        try:
            async for answer in call:
                yield answer
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            call.cancel()

    async def _ask(self, call: ask.Call[Value]) -> Value:
        """Asks, again and again for as long as our patience lasts."""
        method, trying = self._methods[call.method], ask.Trying(self._patience)
        while True:
            try:
                return call.read(await method(call.request, metadata=self._door.metadata))
            except grpc.RpcError as error:
                await asyncio.sleep(trying.failed(error))
