"""Detection."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from maitre import Attempt, Client, Detection, Proposal, Run, State, Worker
from tests.site import PATIENCE, Site, until


def one_run(client: Client, type: str) -> Run:
    """The last run of a type, once there is one."""
    return until(f"a run of {type}", lambda: client.runs(type))[0]


@pytest.mark.parametrize("kind", ["thread", "task", "call"])
def test_proposals_of_a_detector_run(here: Site, client: Client, kind: str) -> None:
    worker, done = Worker(here.address, name="w1", slots=4), threading.Semaphore(0)
    found = ["a", "b", "b"]

    @worker.handler("sweep")
    def sweep(job: Attempt) -> object:
        done.release()
        return [job.json(), job.configuration.admin["depth"]]

    def proposals() -> Iterator[Proposal]:
        for about in found:
            yield Proposal(about, {"room": about}, summary=f"sweep {about}", labels={"x": about})

    if kind == "thread":

        @worker.detector("sweep")
        def look(detection: Detection) -> Iterator[Proposal]:
            assert detection.configuration.admin == {"depth": 3}
            detection.saw(5, 1)
            yield from proposals()

    elif kind == "task":

        @worker.detector("sweep")
        async def look_async(detection: Detection) -> AsyncIterator[Proposal]:
            for proposal in proposals():
                yield proposal

    else:

        @worker.detector("sweep")
        def look_and_call(detection: Detection) -> None:
            for proposal in proposals():
                detection.propose(proposal)

    worker.describe(
        "sweep",
        display_name="Sweep",
        description="Sweeps rooms",
        admin=[{"name": "depth", "kind": "whole", "default": 3, "min": 1, "max": 9}],
        policy={"interval": "1h"},
    )
    with worker.in_background():
        run = one_run(client, "sweep")
        jobs = list(client.jobs(type="sweep"))
    assert (run.status, run.proposed, run.taken, run.worker) == ("succeeded", 3, 2, "w1")
    assert sum(run.refused.values()) == 1
    assert {job.labels["x"] for job in jobs} == {"a", "b"}
    assert {job.labels["summary"] for job in jobs} == {"sweep a", "sweep b"}
    results = [client.result(job, PATIENCE) for job in jobs]
    assert sorted(result[0]["room"] for result in results) == ["a", "b"]
    assert {result[1] for result in results} == {3}


def test_detection_is_requested_and_a_detector_may_fail(here: Site, client: Client) -> None:
    worker = Worker(here.address, name="w1")

    @worker.detector("sweep")
    def look(detection: Detection) -> None:
        raise OSError("the folder is locked")

    worker.describe("sweep", policy={"interval": "1h"})
    with worker.in_background():
        first = one_run(client, "sweep")
        assert (first.status, "the folder is locked" in first.error) == ("failed", True)
        client.detect("sweep")
        second = until("another run", lambda: client.runs("sweep")[1:] and client.runs("sweep"))[0]
        assert second.asked
    assert not list(client.jobs(type="sweep", states=[State.QUEUED]))
