"""Ray: remote functions on a local node, one worker process for each core."""

import os
import time

import measure
import ray


@ray.remote
def noop():
    return None


@ray.remote
def moment():
    return time.time_ns()


def main():
    n_jobs = measure.n_jobs()
    ray.init(num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False)
    ray.get([noop.remote() for _ in range(1000)])

    def start_one():
        before = time.time_ns()
        return ray.get(moment.remote()) - before

    ray.get(moment.remote())
    start = measure.starts(start_one)
    together = measure.rate(n_jobs, lambda: ray.get([noop.remote() for _ in range(n_jobs)]))
    measure.say(None, together, start, n_jobs)


if __name__ == "__main__":
    main()
