"""Dask: futures on a local cluster, one worker process for each core."""

import os
import time

import measure
from dask.distributed import Client, LocalCluster


def noop(_):
    return None


def moment(_):
    return time.time_ns()


def main():
    n_jobs = measure.n_jobs()
    cluster = LocalCluster(n_workers=os.cpu_count(), threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        client.gather(client.map(noop, range(100), pure=False))

        def start_one():
            before = time.time_ns()
            return client.submit(moment, before, pure=False).result() - before

        start = measure.starts(start_one)
        together = measure.rate(
            n_jobs, lambda: client.gather(client.map(noop, range(n_jobs), pure=False))
        )
    measure.say(None, together, start, n_jobs)


if __name__ == "__main__":
    main()
