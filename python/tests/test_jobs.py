"""Jobs from their submission to their result."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from maitre import (
    AsyncClient,
    Attempt,
    Client,
    Conflict,
    Done,
    Ending,
    Invalid,
    JobCancelled,
    JobFailed,
    NotFound,
    Options,
    PermanentFailure,
    Retry,
    SaysProgress,
    Spec,
    State,
    Stopped,
    StopReason,
    TimedOut,
    Unavailable,
    Worker,
)
from maitre.v1 import job_pb2, jobs_pb2
from tests.site import PATIENCE, Site, until


def test_job_runs_and_returns_its_result(here: Site, client: Client) -> None:
    worker = Worker(here.address, name="w1", slots=2)

    @worker.handler("add")
    def add(job: Attempt) -> object:
        return {"sum": sum(job.json()), "job": job.id, "attempt": job.number}

    @worker.handler("shout")
    async def shout(job: Attempt, progress: SaysProgress) -> Done:
        await asyncio.sleep(0)
        progress(0.5, "half")
        return Done(job.payload.upper(), cost=3.0)

    with worker.in_background():
        job = client.submit("add", [1, 2, 39])
        assert job.is_new
        assert client.result(job, PATIENCE) == {"sum": 42, "job": job.id, "attempt": 1}
        loud = client.wait(client.submit("shout", b"hello", labels={"a": "b"}), PATIENCE)
    assert (loud.state, loud.result, loud.worker) == (State.SUCCEEDED, b"HELLO", "w1")
    assert loud.labels == {"a": "b"}
    assert {one.id for one in client.jobs(type="shout")} == {loud.id}


def test_every_option_of_a_job_arrives(client: Client) -> None:
    soon = datetime.now(timezone.utc) + timedelta(hours=1)
    first = client.submit("a", tenant="acme", on_hold=True)
    spec = Spec(
        "a",
        b"\x00\xff",
        tenant="acme",
        pool="p",
        needs={"os": "linux", "gpu": ["a", "b"]},
        slots=2,
        amounts={"ram_mb": 5},
        priority=-7,
        on_demand=True,
        traits=["light"],
        hint="eu",
        inputs={"sha256-ab": 99},
        resource="r",
        after=[first],
        dedupe_key="k",
        not_before=soon,
        start_before=soon + timedelta(hours=1),
        run_timeout=timedelta(minutes=2),
        silence_timeout=1.5,
        retry=Retry(5, backoff=2),
        labels={"team": "red"},
        estimate=3,
        cost=2.5,
        history_key="h",
        group="g",
        parent=first,
        run_if_failed=True,
        on_hold=True,
    )
    job = client.get(client.submit(spec))
    assert (job.tenant, job.priority, job.payload) == ("acme", -7, b"\x00\xff")
    assert (job.state, job.on_hold, dict(job.labels)) == (State.BLOCKED, True, {"team": "red"})
    kept = client._methods["Get"](jobs_pb2.GetRequest(id=job.id)).job.spec
    assert {key: sorted(one.values) for key, one in kept.needs.items()} == {
        "os": ["linux"],
        "gpu": ["a", "b"],
    }
    assert (kept.run_timeout_ms, kept.silence_timeout_ms, kept.estimate_ms) == (120_000, 1500, 3000)
    assert (kept.retry.attempts_max, kept.retry.backoff_ms) == (5, 2000)
    assert (list(kept.after), kept.parent, kept.not_before_ms) == (
        [first.id],
        first.id,
        round(soon.timestamp() * 1000),
    )
    with pytest.raises(TypeError, match="a job has no `colour`"):
        Spec("a", colour="red")  # type: ignore[call-arg]


def test_every_field_of_the_protocol_has_an_option() -> None:
    own = {"type", "payload", "array_index"}
    names = {field.name.removesuffix("_ms") for field in job_pb2.Spec.DESCRIPTOR.fields}
    assert names - own == set(Options.__annotations__)


def test_a_failure_is_tried_again_and_a_permanent_one_is_not(here: Site, client: Client) -> None:
    worker = Worker(here.address, name="w1")

    @worker.handler("flaky")
    def flaky(job: Attempt) -> int:
        if job.n_failures < 2:
            raise ValueError(f"not yet: {job.n_failures}")
        return job.number

    @worker.handler("hopeless")
    async def hopeless(job: Attempt) -> None:
        raise PermanentFailure("never", exit_code=7)

    @worker.handler("odd")
    def odd(job: Attempt) -> object:
        return object()

    with worker.in_background():
        job = client.submit("flaky", retry=Retry(3, backoff=0.01, backoff_max=0.01))
        assert client.result(job, PATIENCE) == 3
        ends = [(one.ending, one.error) for one in client.get(job).attempts]
        assert ends[:2] == [
            (Ending.TRANSIENT, "ValueError: not yet: 0"),
            (Ending.TRANSIENT, "ValueError: not yet: 1"),
        ]
        with pytest.raises(JobFailed, match="never") as failed:
            client.result(client.submit("hopeless"), PATIENCE)
        assert (failed.value.job.cause, failed.value.job.exit_code) == ("permanent", 7)
        with pytest.raises(JobFailed, match="the result is not JSON"):
            client.result(client.submit("odd"), PATIENCE)


def test_watch_shows_progress_as_it_happens(here: Site, client: Client) -> None:
    worker, go = Worker(here.address, name="w1"), threading.Event()

    @worker.handler("slow")
    def slow(job: Attempt, progress: SaysProgress) -> None:
        progress(0.25, "a quarter")
        job.log("so far, so good\n")
        assert go.wait(PATIENCE)

    with worker.in_background():
        job = client.submit("slow")
        seen = []
        for change in client.watch(job):
            seen.append((change.state, change.progress and change.progress.note))
            if change.progress:
                assert change.progress.fraction == 0.25
                go.set()
    assert seen[-1][0] is State.SUCCEEDED
    assert (State.RUNNING, "a quarter") in seen
    assert b"".join(piece.bytes for piece in client.logs(job)) == b"so far, so good\n"
    # The state of a final job is reported at once.
    assert [change.state for change in client.watch(job)] == [State.SUCCEEDED]


@pytest.mark.parametrize("kind", ["thread", "task", "deaf"])
def test_a_cancelled_job_stops_its_handler(here: Site, client: Client, kind: str) -> None:
    worker, stopped = Worker(here.address, name="w1"), threading.Event()
    reasons: list[object] = []

    if kind == "thread":

        @worker.handler("long")
        def polite(job: Attempt) -> None:
            try:
                job.sleep(PATIENCE)
            except Stopped as stop:
                reasons.append(stop.reason)
                stopped.set()
                raise

    elif kind == "task":

        @worker.handler("long")
        async def task(job: Attempt) -> None:
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                reasons.append(job.stop_reason)
                stopped.set()

    else:

        @worker.handler("long")
        def deaf(job: Attempt) -> None:
            # Never checks its stop, so it is killed after the grace period.
            try:
                while not job.cancelled:
                    time.sleep(0.01)
                deadline = time.monotonic() + PATIENCE
                while time.monotonic() < deadline:
                    time.sleep(0.01)
            except Stopped:
                reasons.append(job.stop_reason)
                stopped.set()
                raise

    with worker.in_background():
        job = client.submit("long")
        until("it runs", lambda: client.get(job).state is State.RUNNING)
        assert client.cancel(job)[0].changed
        with pytest.raises(JobCancelled):
            client.result(job, PATIENCE)
        assert stopped.wait(PATIENCE)
    assert reasons == [StopReason.CANCELLED]


def test_waiting_job_has_an_explanation(client: Client) -> None:
    job = client.submit("resize", needs={"gpu": "a100"})
    why = client.explain(job)
    assert (why.state, why.reason) == (State.QUEUED, "no-worker-ever")
    assert "gpu=a100" in str(why)
    with pytest.raises(TimedOut, match=f"not over after 0.05 s: {job.id}"):
        client.wait(job, 0.05)
    client.cancel(job)
    assert client.explain(job).reason == ""


def test_attempt_stops_at_its_run_timeout(here: Site, client: Client) -> None:
    worker = Worker(here.address, name="w1", slots=2)

    @worker.handler("long")
    def long(job: Attempt) -> None:
        job.sleep(PATIENCE)

    with worker.in_background():
        late = client.submit("long", run_timeout=0.2, retry=1)
        mute = client.submit("long", silence_timeout=0.2, retry=1)
        ends = [client.wait(late, PATIENCE), client.wait(mute, PATIENCE)]
    assert [end.cause for end in ends] == ["exhausted", "exhausted"]
    assert "it ran for longer than 200 ms" in ends[0].error
    assert "it said nothing for longer than 200 ms" in ends[1].error


def test_errors_have_classes_and_name_the_field(client: Client) -> None:
    with pytest.raises(NotFound, match="there is no job 99"):
        client.get(99)
    with pytest.raises(Invalid, match="1001") as invalid:
        client.submit("a", priority=1001)
    assert invalid.value.field.endswith("priority")
    first = client.submit("a", idempotency_key="k")
    again = client.submit("a", idempotency_key="k")
    assert (again.id, again.is_new) == (first.id, False)
    with pytest.raises(Conflict):
        client.submit("b", idempotency_key="k")


def test_unreachable_scheduler_is_reported_after_the_patience() -> None:
    with Client("127.0.0.1:1", patience=0.1) as nobody, pytest.raises(Unavailable):
        nobody.get(1)
    with pytest.raises(ValueError, match="is not the address of a scheduler"):
        Client("ftp://example.com")


def test_async_client_does_the_same(here: Site) -> None:
    async def main() -> None:
        worker = Worker(here.address, name="w1")
        here_is = threading.get_ident()

        @worker.handler("where")
        async def where(job: Attempt, progress: SaysProgress) -> bool:
            progress(1, "all")
            return threading.get_ident() == here_is

        async with AsyncClient(here.address, patience=PATIENCE) as client:
            running = asyncio.create_task(worker.run_async())
            job, other = await client.submit_all([Spec("where"), Spec("where")])
            assert await client.result(job, PATIENCE) is True
            states = [change.state async for change in client.watch(job, other)]
            assert states[-1] is State.SUCCEEDED
            assert len([one async for one in client.jobs()]) == 2
            waiting = await client.submit("nobody")
            assert (await client.explain(waiting)).reason == "no-worker-ever"
            assert (await client.cancel(waiting))[0].changed
            with pytest.raises(NotFound):
                await client.get(99)
            worker.leave()
            await asyncio.wait_for(running, PATIENCE)

    asyncio.run(main())
