"""Measures the value of run time estimates that use only similar jobs.

    python3 bench/cells.py target/release/maitre ci_lrts_2020_2022.csv.gz

Jobs are grouped into cells by what is known at their arrival. An estimator that knows only the cell
gives all its jobs one estimate, or draws one for each. The estimates use the lengths of the cell in
hindsight, with the job's own length unless stated otherwise. They go into the column `estimate_s`
of a copy, which `balanced:user` replays. Each replay runs WAYS times with moved arrivals of builds.
Gains are those over `fifo`, relative to the gain of true lengths in the same replay. The script
needs only Python.
"""

import collections
import csv
import gzip
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

OPTIONS = ["--fleet", "64", "--load", "0.9", "--json"]
# The largest shift of arrivals in seconds of the log, and the number of variants.
WAYS, MOVED_S = 30, 600
# Student's t for WAYS replays: the two-sided 95 % limit of the mean.
STUDENT = 2.045
# The smallest cell. In a smaller one the mean would depend much on the job itself.
LEAST, FEWER = 5, (2, 3, 5)
# The properties that define cells, the coarsest first. `near` splits them by time into equal parts.
CELLS = [
    ["type"],
    ["type", "stages"],
    ["type", "stages", "request"],
    ["type", "stages", "commit"],
    ["type", "stages", "request", "commit"],
    ["type", "stages", "request", "commit", "near"],
]
# Only lengths count.
LENGTHS = {
    "preset": "balanced", "share": False, "guard": None, "rules": {"priority": 0, "age": 0},
    "shortest": {"on_demand": 1, "patience_min_ms": 10**12},
}  # fmt: skip


def main():
    maitre, path = sys.argv[1:]
    jobs = read(path)
    parted = {", ".join(chain): cells(jobs, chain, LEAST) for chain in CELLS}
    small = {least: cells(jobs, CELLS[-1], least) for least in FEWER}
    for name, own in parted.items():
        print(f"{name}: {len(own)} cells")
    found = collections.defaultdict(list)
    for way in range(WAYS):
        replay = Replay(maitre, jobs, random.Random(way))
        for name, gain in gains(replay, jobs, parted, small, random.Random(way)):
            found[name].append(gain)
        print(f"{way + 1} of {WAYS} ways", file=sys.stderr, flush=True)
    for name, own in found.items():
        mean, error = statistics.fmean(own), statistics.stdev(own) / WAYS**0.5
        limit = mean + STUDENT * error
        print(f"{name:66} {mean:5.1f} % limit {limit:5.1f} range {min(own):5.1f} {max(own):5.1f}")


def gains(replay, jobs, parted, small, chance):
    truth = [job["length"] for job in jobs]
    (tenfold,) = replay.waits("--policy", "balanced:user", estimates=[10 * own for own in truth])
    only = ["--policy", f"only={json.dumps(LENGTHS)}"]
    fifo, true, history = replay.waits("--compare", "fifo,balanced:perfect,balanced:history")
    (only_true,) = replay.waits(*only, "--estimates", "perfect")
    (only_history,) = replay.waits(*only, "--estimates", "history")
    yield "true lengths, ten times", part(fifo, true, tenfold)
    yield "history", part(fifo, true, history)
    yield "history, only lengths count", part(fifo, only_true, only_history)
    for name, own in parted.items():
        mean = of_cells(truth, own, alike(statistics.fmean))
        middle = of_cells(truth, own, alike(logarithmic_mean))
        drawn = of_cells(truth, own, lambda lengths: chance.sample(lengths, len(lengths)))
        tenfold = [10 * length for length in mean]
        told = {"mean": mean, "of logarithms": middle, "another's": drawn, "ten times": tenfold}
        for how, estimates in told.items():
            (wait,) = replay.waits("--policy", "balanced:user", estimates=estimates)
            yield f"{name}; {how}", part(fifo, true, wait)
        (wait,) = replay.waits(*only, "--estimates", "user", estimates=mean)
        yield f"{name}; mean, only lengths count", part(fifo, only_true, wait)
        # Lengths are shuffled within the cell, so that they do not identify its jobs.
        policies = ["--compare", "fifo,balanced:perfect,balanced:user"]
        waits = replay.waits(*policies, estimates=mean, lengths=drawn)
        yield f"{name}; mean, lengths dealt", part(*waits)
    for least, own in small.items():
        for how, mean in (("itself counted", alike(logarithmic_mean)), ("without itself", others)):
            estimates = of_cells(truth, own, mean)
            (wait,) = replay.waits("--policy", "balanced:user", estimates=estimates)
            yield f"{least} neighbours; of logarithms, {how}", part(fifo, true, wait)


def part(fifo, true, wait):
    return 100 * (fifo - wait) / (fifo - true)


# Jobs and cells


def read(path):
    with gzip.open(path, "rt", newline="") as file:
        jobs = [{"row": row} for row in csv.DictReader(file)]
    stages = collections.defaultdict(list)
    for job in jobs:
        row = job["row"]
        job["build"] = row["tenant"], row["id"]
        job["type"], job["commit"] = row["type"], row["locality"]
        job["request"] = row["tenant"], row["id"].split("#")[0]
        job["length"] = float(row["duration_s"])
        stages[job["build"]].append(row["type"])
    for job in jobs:
        job["stages"] = tuple(sorted(stages[job["build"]]))
    return jobs


def cells(jobs, chain, least):
    """The narrowest cells first. A job in a cell that is too small goes to the next coarser one."""
    words = [word for word in chain if word != "near"]
    left, found = list(range(len(jobs))), []
    for depth in range(len(words), -1, -1):
        groups = collections.defaultdict(list)
        for job in left:
            groups[tuple(jobs[job][word] for word in words[:depth])].append(job)
        left = []
        for group in groups.values():
            (found if len(group) >= least or depth == 0 else left).append(group)
        left = [job for group in left for job in group]
    if "near" in chain:
        found = [near for cell in found for near in neighbours(jobs, cell, least)]
    return found


def neighbours(jobs, cell, least):
    cell = sorted(cell, key=lambda job: float(jobs[job]["row"]["arrival_s"]))
    count = max(1, len(cell) // least)
    return [cell[nth * len(cell) // count : (nth + 1) * len(cell) // count] for nth in range(count)]


def of_cells(truth, parted, estimate):
    estimates = list(truth)
    for cell in parted:
        for job, length in zip(cell, estimate([truth[job] for job in cell])):
            estimates[job] = length
    return estimates


def alike(mean):
    return lambda lengths: [mean(lengths)] * len(lengths)


def others(lengths):
    """The mean of the other jobs of the cell, or the job's own length if it is alone."""
    rest = [lengths[:nth] + lengths[nth + 1 :] for nth in range(len(lengths))]
    return [logarithmic_mean(own or lengths) for own in rest]


def logarithmic_mean(lengths):
    return math.exp(statistics.fmean(math.log(max(length, 1)) for length in lengths))


# Replays


class Replay:
    """The trace with moved arrivals of builds."""

    def __init__(self, maitre, jobs, chance):
        self.maitre, self.jobs = maitre, jobs
        moved = collections.defaultdict(lambda: chance.randint(-MOVED_S, MOVED_S))
        arrivals = [float(job["row"]["arrival_s"]) + moved[job["build"]] for job in jobs]
        self.arrivals = [max(0, arrival) for arrival in arrivals]
        self.order = sorted(range(len(jobs)), key=lambda job: self.arrivals[job])

    def waits(self, *options, estimates=None, lengths=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.csv")
            with open(path, "w", newline="") as file:
                writer = csv.DictWriter(file, self.jobs[0]["row"].keys(), lineterminator="\n")
                writer.writeheader()
                for job in self.order:
                    row = dict(self.jobs[job]["row"], arrival_s=self.arrivals[job])
                    if estimates:
                        row["estimate_s"] = f"{max(estimates[job], 0.001):.3f}"
                    if lengths:
                        row["duration_s"] = lengths[job]
                    writer.writerow(row)
            command = [self.maitre, "simulate", path, *OPTIONS, *options]
            said = subprocess.run(command, check=True, capture_output=True)
        return [run["wait_mean_s"] for run in json.loads(said.stdout)["runs"]]


if __name__ == "__main__":
    main()
