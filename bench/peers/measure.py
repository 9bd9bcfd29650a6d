"""What every peer's script shares: the clock, and the way to say what was seen."""

import json
import statistics
import sys
import time

# Jobs that are timed one by one, with a pause between them.
N_TIMED = 100
PAUSE_S = 0.01


def rate(n_jobs, work):
    """Jobs in a second, if `work` does so many of them."""
    start = time.perf_counter()
    work()
    return n_jobs / (time.perf_counter() - start)


def starts(start_one):
    """The median of times from submission to start in microseconds; `start_one` says one in ns."""
    seen = []
    for _ in range(N_TIMED):
        seen.append(start_one() / 1000)
        time.sleep(PAUSE_S)
    return statistics.median(seen)


def until(is_so, patience_s=300):
    """Looks until something is so."""
    end = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError("it did not come to an end")
        time.sleep(0.002)


def empty(n_left, patience_s=600):
    """Looks until nothing is left. Counting costs a server time that workers could have: seldom
    while much is left, and soon enough for all that do less than 100,000 jobs in a second."""
    end = time.monotonic() + patience_s
    while (n := n_left()) > 0:
        if time.monotonic() > end:
            raise TimeoutError("it did not come to an end")
        time.sleep(min(1, 0.005 + n / 100_000))


def drained(n_jobs, n_left):
    """Jobs in a second of a queue that was full before workers came: from the first end that is
    seen to the last. What is seen is as old as the question."""
    while True:
        time.sleep(0.002)
        start = time.perf_counter()
        n_first = n_left()
        if n_first < n_jobs:
            break
    empty(n_left)
    return n_first / (time.perf_counter() - start)


def say(drained, together, start_us, n_jobs):
    """The figures, as the last line of the output. `drained` may be None: there is no queue."""
    figures = {"jobs": n_jobs, "drained_per_s": drained, "together_per_s": together}
    print(json.dumps({**figures, "start_p50_us": start_us}))


def n_jobs():
    """How many jobs to run: the script's only argument."""
    return int(sys.argv[1])
