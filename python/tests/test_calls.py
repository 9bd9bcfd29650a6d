"""Every call of both clients and every method of a worker, with a real scheduler."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from maitre import (
    AsyncClient,
    Attempt,
    Change,
    Client,
    Detection,
    JobFailed,
    Proposal,
    SaysProgress,
    Spec,
    State,
    Worker,
)
from tests.site import PATIENCE, Site, until


def public(kind: type) -> dict[str, inspect.Signature]:
    """The public methods, and their parameters."""
    members = inspect.getmembers(kind, inspect.isfunction)
    return {name: inspect.signature(one) for name, one in members if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    plain, awaited = public(Client), public(AsyncClient)
    assert plain.keys() == awaited.keys()
    for name, signature in plain.items():
        assert signature.parameters.keys() == awaited[name].parameters.keys(), name
        assert str(signature.return_annotation) == str(awaited[name].return_annotation).replace(
            "AsyncIterator", "Iterator"
        ), name


class Same:
    """Both clients with one interface: coroutines are awaited, and iterators become lists."""

    def __init__(self, client: Client | AsyncClient) -> None:
        self._client = client

    async def __call__(self, method: str, *given: Any, **named: Any) -> Any:  # noqa: ANN401
        """Calls, and waits for the answer without blocking the loop."""
        function = getattr(self._client, method)
        if isinstance(self._client, Client):
            return await asyncio.to_thread(_whole, function, given, named)
        answer = function(*given, **named)
        return [one async for one in answer] if hasattr(answer, "__aiter__") else await answer


def _whole(function: Any, given: Any, named: Any) -> Any:  # noqa: ANN401
    answer = function(*given, **named)
    return list(answer) if isinstance(answer, Iterator) else answer


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_call_about_jobs(here: Site, kind: type[Client] | type[AsyncClient]) -> None:
    worker = Worker(here.address, name="w1", slots=4)

    @worker.handler("double")
    def double(job: Attempt, progress: SaysProgress) -> int:
        progress(0.5, "half", stage="doubling")
        job.log("working\n")
        if job.json() is None:
            raise ValueError("nothing to double")
        return int(job.json()) * 2

    async def ask(client: Client | AsyncClient) -> None:
        same = Same(client)
        one = await same("submit", "double", 21, labels={"a": "b"})
        assert await same("result", one, PATIENCE) == 42
        assert (await same("get", one)).state is State.SUCCEEDED
        assert [piece.bytes for piece in await same("logs", one, follow=True)] == [b"working\n"]
        two, three = await same("submit_all", [Spec("double", 1), Spec("double", 2)])
        ended = await same("wait_all", [two, three], PATIENCE)
        assert [job.json() for job in ended] == [2, 4]
        array = await same("submit_array", Spec("double", 5, group="five"), 3)
        assert [(await same("wait", job, PATIENCE)).json() for job in array] == [10, 10, 10]
        assert {job.id for job in await same("jobs", group="five")} == {job.id for job in array}
        bad = await same("submit", "double", retry=1)
        with pytest.raises(JobFailed, match="nothing to double"):
            await same("result", bad, PATIENCE)
        assert (await same("retry", bad))[0].changed
        assert (await same("watch", bad))[-1].state is State.FAILED
        waits = await same("submit", "nobody")
        assert (await same("explain", waits)).reason == "no-worker-ever"
        assert (await same("cancel", waits))[0].state is State.CANCELLED

    async def main() -> None:
        if kind is Client:
            with here.client() as client:
                await ask(client)
        else:
            async with AsyncClient(here.address, patience=PATIENCE) as awaited:
                await ask(awaited)

    with worker.in_background():
        asyncio.run(main())


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_call_about_types(here: Site, kind: type[Client] | type[AsyncClient]) -> None:
    worker = Worker(here.address, name="w1")

    @worker.handler("sweep")
    def sweep(job: Attempt) -> object:
        return job.configuration.admin["depth"]

    @worker.detector("sweep")
    def look(detection: Detection) -> Iterator[Proposal]:
        assert (detection.type, detection.proposals_max) == ("sweep", 7)
        detection.check()
        yield Proposal(f"room-{detection.run}", priority=3)

    worker.describe(
        "sweep",
        admin=[{"name": "depth", "kind": "whole", "default": 3, "min": 1, "max": 9}],
        policy={"interval": "1h", "proposals_max": 7},
    )

    async def ask(client: Client | AsyncClient) -> None:
        same = Same(client)
        runs = await _until(lambda: same("runs", "sweep"), lambda runs: len(runs) == 1)
        assert (runs[0].asked, runs[0].succeeded) == (False, 1)
        await same("set_type", "sweep", {"admin.depth": "5"})
        assert await same("detect", "sweep") is False
        runs = await _until(lambda: same("runs", "sweep"), lambda runs: len(runs) == 2)
        assert (runs[0].asked, runs[0].status) == (True, "succeeded")
        newest, oldest = await same("jobs", type="sweep")
        assert (newest.priority, (await same("get", newest)).json()) == (3, 5)
        assert (await same("get", oldest)).json() == 3

    async def main() -> None:
        if kind is Client:
            with here.client() as client:
                await ask(client)
        else:
            async with AsyncClient(here.address, patience=PATIENCE) as awaited:
                await ask(awaited)

    with worker.in_background():
        asyncio.run(main())


async def _until(ask: Any, is_so: Any) -> Any:  # noqa: ANN401
    for _ in range(int(PATIENCE / 0.02)):
        answer = await ask()
        if is_so(answer):
            return answer
        await asyncio.sleep(0.02)
    raise AssertionError("never came")


def test_all_changes_can_be_watched_with_progress_and_stage(here: Site, client: Client) -> None:
    worker, go = Worker(here.address, name="w1"), threading.Event()

    @worker.handler("slow")
    def slow(job: Attempt, progress: SaysProgress) -> None:
        progress(0.25, "a quarter", stage="copying")
        assert go.wait(PATIENCE)

    seen: list[Change] = []
    is_watched, is_over = threading.Event(), threading.Event()

    def watch() -> None:
        for change in client.watch_all(type="slow"):
            is_watched.set()
            seen.append(change)
            if change.progress and change.progress.stage:
                go.set()
            if change.state.is_final:
                is_over.set()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    with worker.in_background():
        # The stream has no changes from before its start, so jobs are submitted until it has one.
        until("it looks", lambda: client.submit("slow", on_hold=True) and is_watched.wait(0.1))
        job = client.submit("slow")
        assert is_over.wait(PATIENCE)
        assert client.get(job).state in (State.RUNNING, State.SUCCEEDED)
        go.set()
        client.wait(job, PATIENCE)
    stages = [change.progress for change in seen if change.progress]
    assert (stages[0].stage, stages[0].note, stages[0].fraction) == ("copying", "a quarter", 0.25)


def test_all_changes_can_be_awaited(here: Site) -> None:
    async def main() -> None:
        async with AsyncClient(here.address, patience=PATIENCE) as client:
            changes: AsyncIterator[Change] = client.watch_all(type="nobody", states=[State.QUEUED])
            first = asyncio.ensure_future(anext(changes))
            while not first.done():
                await client.submit("nobody")
                await asyncio.wait([first], timeout=0.1)
            assert ((await first).type, (await first).state) == ("nobody", State.QUEUED)

    asyncio.run(main())


def test_worker_reports_its_health_and_context(here: Site, client: Client) -> None:
    worker = Worker(here.address, name="w1", slots=2, hints=["eu"], has={"os": "linux"})
    told: list[object] = []

    @worker.handler("tell")
    def tell(job: Attempt) -> object:
        told.append(job.published.value)
        return job.published.version

    def status() -> dict[str, Any]:
        (one,) = json.loads(here.run("workers", "--json", "--server", here.address))
        assert isinstance(one, dict)
        return one

    with pytest.raises(RuntimeError, match="does not run"):
        worker.well()
    with worker.in_background():
        until("it is there", lambda: json.loads(_workers(here)))
        assert status()["hints"] == ["eu"]
        worker.hints(["us", "eu"])
        until("its hints changed", lambda: sorted(status()["hints"]) == ["eu", "us"])
        worker.unwell()
        until("it is unwell", lambda: status()["state"] == "unhealthy")
        job = client.submit("tell")
        assert client.explain(job).reason in ("worker-unhealthy", "no-worker-now")
        worker.well()
        assert client.result(job, PATIENCE) == 0
        # Only the worker that the operator selected may publish.
        here.run("context", "allow", "w1", "--server", here.address)
        worker.publish({"racks": 4})
        until("it is published", lambda: '"racks": 4' in _context(here))
        assert client.result(client.submit("tell"), PATIENCE) == 1
        assert told == [None, {"racks": 4}]
        worker.leave_now()


def _workers(here: Site) -> str:
    return here.run("workers", "--json", "--server", here.address)


def _context(here: Site) -> str:
    return here.run("context", "--server", here.address)
