"""The common parts of all peers' scripts: the clock, and the output of results."""

import json
import statistics
import sys
import time

# Jobs that are timed alone, and the pause between them.
N_TIMED = 100
PAUSE_S = 0.01


def rate(n_jobs, work):
    """Jobs in a second, if `work` runs this many."""
    start = time.perf_counter()
    work()
    return n_jobs / (time.perf_counter() - start)


def starts(start_one):
    """The median time from submission to start in microseconds. `start_one` returns one in ns."""
    seen = []
    for _ in range(N_TIMED):
        seen.append(start_one() / 1000)
        time.sleep(PAUSE_S)
    return statistics.median(seen)


def until(is_so, patience_s=300):
    """Polls until a condition is true."""
    end = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError("it did not come to an end")
        time.sleep(0.002)


def empty(n_left, patience_s=600):
    """Polls until the queue is empty. A count costs the server time that workers could use. So
    polls are rare while the queue is long, but frequent enough for up to 100,000 jobs in a
    second."""
    end = time.monotonic() + patience_s
    while (n := n_left()) > 0:
        if time.monotonic() > end:
            raise TimeoutError("it did not come to an end")
        time.sleep(min(1, 0.005 + n / 100_000))


def drained(n_jobs, n_left):
    """Jobs in a second of a queue that was full before workers started, from the first observed end
    to the last. An observation is as old as its query."""
    while True:
        time.sleep(0.002)
        start = time.perf_counter()
        n_first = n_left()
        if n_first < n_jobs:
            break
    empty(n_left)
    return n_first / (time.perf_counter() - start)


def say(drained, together, start_us, n_jobs):
    """Prints the results as the last line. `drained` may be None, for a peer without a queue."""
    figures = {"jobs": n_jobs, "drained_per_s": drained, "together_per_s": together}
    print(json.dumps({**figures, "start_p50_us": start_us}))


def n_jobs():
    """The number of jobs: the script's only argument."""
    return int(sys.argv[1])
