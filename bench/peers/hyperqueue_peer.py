"""HyperQueue with its Python package: processes that do nothing, without output files."""

import tempfile
import time
from pathlib import Path

import measure
from hyperqueue import Job, LocalCluster


def noops(n_jobs, last):
    """Tasks that do nothing, and one after them that reports the end."""
    job = Job()
    for _ in range(n_jobs):
        job.program(["true"], stdout=None, stderr=None, priority=1)
    job.program(["touch", str(last)], stdout=None, stderr=None, priority=0)
    return job


def wait(seen):
    measure.until(seen.exists)
    seen.unlink()


def start_one(client, seen):
    job = Job()
    script = f"date +%s%N > {seen}.tmp; mv {seen}.tmp {seen}"
    job.program(["sh", "-c", script], stdout=None, stderr=None)
    before = time.time_ns()
    client.submit(job)
    measure.until(seen.exists)
    took = int(seen.read_text()) - before
    seen.unlink()
    return took


def main():
    n_jobs = measure.n_jobs()
    with tempfile.TemporaryDirectory() as place, LocalCluster() as cluster:
        seen = Path(place) / "seen"
        client = cluster.client()
        client.submit(noops(n_jobs, seen))
        cluster.start_worker()
        drained = measure.rate(n_jobs, lambda: wait(seen))
        start = measure.starts(lambda: start_one(client, seen))
        job = noops(n_jobs, seen)

        def both():
            client.submit(job)
            wait(seen)

        together = measure.rate(n_jobs, both)
    measure.say(drained, together, start, n_jobs)


if __name__ == "__main__":
    main()
