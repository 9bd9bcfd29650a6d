"""Guarantees when workers and schedulers are killed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import grpc
import pytest

from maitre import Attempt, Client, Ending, State, Stopped, StopReason, Worker, WorkerError
from maitre.v1 import job_pb2, worker_pb2, worker_pb2_grpc
from tests.site import PATIENCE, Site, site, until

# A handler that reports its start, waits for a signal, and returns its worker.
PATIENT = """
@worker.handler("slow")
def slow(job):
    pathlib.Path(f"began-{name}-{job.number}").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return [name, job.number]
"""


def test_job_of_a_killed_worker_runs_elsewhere_and_stale_reports_change_nothing(
    here: Site, client: Client
) -> None:
    first = here.work("w1", PATIENT)
    job = client.submit("slow")
    until("it began", (here.folder / "began-w1-1").exists)
    # The handler starts before the server has the accept.
    until("it runs", lambda: client.get(job).state is State.RUNNING)
    first.kill()
    first.wait()
    here.work("w2", PATIENT)
    until("it began again", (here.folder / "began-w2-2").exists)
    says = worker_pb2.Complete(
        attempt=worker_pb2.AttemptRef(job=job.id, attempt=1),
        ending=job_pb2.ENDING_SUCCEEDED,
        result=b'"ghost"',
    )
    assert _ghost(here, says).stale
    (here.folder / "go").touch()
    assert client.result(job, PATIENCE) == ["w2", 2]
    first_try, second_try = client.get(job).attempts
    assert (first_try.ending, first_try.worker) == (Ending.LOST, "w1")
    assert (second_try.ending, second_try.worker) == (Ending.SUCCEEDED, "w2")
    assert client.get(job).n_losses == 1


def test_suspended_worker_does_not_report_lost_attempts(here: Site, client: Client) -> None:
    first = here.work("w1", PATIENT)
    job = client.submit("slow")
    until("it began", (here.folder / "began-w1-1").exists)
    # The handler starts before the server has the accept.
    until("it runs", lambda: client.get(job).state is State.RUNNING)
    first.send_signal(signal.SIGSTOP)
    second = here.work("w2", PATIENT)
    until("it began again", (here.folder / "began-w2-2").exists)
    (here.folder / "go").touch()
    assert client.result(job, PATIENCE) == ["w2", 2]
    # The worker wakes up with a job that it could end, and does not report it. It runs further
    # jobs.
    first.send_signal(signal.SIGCONT)
    second.kill()
    second.wait()
    assert client.result(client.submit("slow"), PATIENCE)[0] == "w1"
    assert client.result(job) == ["w2", 2]


def test_restarted_scheduler_loses_no_attempt_and_no_end(tmp_path: Path) -> None:
    with site(tmp_path, lease="30s") as here, here.client() as client:
        worker, go = Worker(here.address, name="w1", slots=2), threading.Event()
        began, ended = threading.Semaphore(0), threading.Event()

        @worker.handler("slow")
        def slow(job: Attempt) -> int:
            began.release()
            assert go.wait(PATIENCE)
            return job.number

        @worker.handler("quick")
        def quick(job: Attempt) -> str:
            began.release()
            assert ended.wait(PATIENCE)
            return "while disconnected"

        with worker.in_background():
            running, ending = client.submit("slow"), client.submit("quick")
            assert began.acquire(timeout=PATIENCE)
            assert began.acquire(timeout=PATIENCE)
            changes = client.watch(ending)
            assert not next(changes).state.is_final
            here.kill()
            ended.set()
            here.launch()
            assert client.result(ending, PATIENCE) == "while disconnected"
            assert [change.state for change in changes][-1] is State.SUCCEEDED
            go.set()
            assert client.result(running, PATIENCE) == 1
        assert len(client.get(running).attempts) == 1


def test_attempts_stop_at_the_lease_end_without_a_report(here: Site, client: Client) -> None:
    worker, go = Worker(here.address, name="w1"), threading.Event()
    reasons: SimpleQueue[StopReason] = SimpleQueue()

    @worker.handler("slow")
    def slow(job: Attempt) -> int:
        try:
            while not go.is_set():
                job.sleep(0.01)
        except Stopped as stop:
            reasons.put(stop.reason)
            # The handler ignores its stop, and returns a result anyway.
            return -1
        return job.number

    with worker.in_background():
        job = client.submit("slow")
        until("it runs", lambda: client.get(job).state is State.RUNNING)
        here.kill()
        assert reasons.get(timeout=PATIENCE) is StopReason.LEASE_OVER
        here.launch()
        until("it runs again", lambda: client.get(job).n_attempts == 2)
        go.set()
        assert client.result(job, PATIENCE) == 2
    assert [one.ending for one in client.get(job).attempts] == [Ending.LOST, Ending.SUCCEEDED]


def test_sigterm_lets_jobs_finish_and_gives_the_rest_back(here: Site, client: Client) -> None:
    program = """
    @worker.handler("slow")
    def slow(job):
        pathlib.Path(f"began-{job.id}").touch()
        while not pathlib.Path(f"go-{job.id}").exists():
            job.sleep(0.01)
        return name
    """
    first = here.work("w1", program)
    ready, late, more = (client.submit("slow") for _ in range(3))
    for job in (ready, late):
        until("it began", (here.folder / f"began-{job.id}").exists)
    first.send_signal(signal.SIGTERM)
    until("it drains", lambda: client.explain(more).reason == "no-worker-now")
    (here.folder / f"go-{ready.id}").touch()
    assert client.result(ready, PATIENCE) == "w1"
    # After the second signal it does not wait any longer.
    first.send_signal(signal.SIGTERM)
    assert first.wait(PATIENCE) == 0
    given_back = client.get(late)
    assert (given_back.state, given_back.n_failures) == (State.QUEUED, 0)
    assert given_back.attempts[0].error == "the worker shuts down"
    here.work("w2", program)
    for job in (late, more):
        (here.folder / f"go-{job.id}").touch()
        assert client.result(job, PATIENCE) == "w2"


def test_rejected_worker_reports_the_reason(here: Site) -> None:
    worker = Worker(here.address, name="w1", slots=0)
    worker.handler("a")(lambda job: None)
    with pytest.raises(WorkerError, match="slots` is 0, which is not between 1 and"):
        worker.run()
    with pytest.raises(ValueError, match="there is nothing to do"):
        Worker(here.address).run()


def _ghost(here: Site, says: worker_pb2.Complete) -> worker_pb2.CompleteAck:
    """A worker with the name of the first one connects with a completion. Returns the server's
    answer."""
    over = threading.Event()
    hello = worker_pb2.Hello(worker="w1", instance="ghost", protocol=1, slots=1)
    hello.types.add(name="other")
    hello.attempts.append(says.attempt)

    def batches() -> Iterator[worker_pb2.WorkerBatch]:
        for message in (
            worker_pb2.WorkerMessage(hello=hello),
            worker_pb2.WorkerMessage(complete=says),
        ):
            yield worker_pb2.WorkerBatch(messages=[message])
        over.wait(PATIENCE)

    with grpc.insecure_channel(here.address) as channel:
        try:
            for batch in worker_pb2_grpc.WorkerStub(channel).Session(batches(), timeout=PATIENCE):
                for message in batch.messages:
                    if message.WhichOneof("message") == "complete_ack":
                        return message.complete_ack
        finally:
            over.set()
    raise AssertionError("the server did not answer")
