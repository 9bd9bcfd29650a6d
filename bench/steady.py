"""Measures how results of `balanced` vary with the fleet, the load and the arrivals.

    python3 bench/steady.py images target/release/maitre genai_sd_2024.csv.gz
    python3 bench/steady.py shares target/release/maitre hetovl_jobs.csv.gz het_slots.csv

`images`: the part of the gain over `fifo` that predicted lengths reach, relative to true lengths,
on similar fleets, at similar loads, and with moved arrivals. `shares`: the error of shares with
moved arrivals. One replay runs at a time.
"""

import csv
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

FLEETS = (8, 16, 32, 48, 56, 60, 62, 63, 64, 65, 66, 68, 72, 80, 128)
LOADS = (0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.2)
AIM = 97
# The largest shift of arrivals in seconds of the log, and the number of variants.
IMAGES_MOVED_S, IMAGES_WAYS = 30, 20
SHARES_MOVED_MS, SHARES_WAYS = 200, 300


def main():
    what, maitre, path, *rest = sys.argv[1:]
    {"images": images, "shares": shares}[what](maitre, path, *rest)


def images(maitre, path):
    for fleet in FLEETS:
        tell_gain(f"fleet {fleet}, load 0.9", maitre, path, fleet, 0.9)
    for load in LOADS:
        tell_gain(f"fleet 64, load {load}", maitre, path, 64, load)
    gains = []
    for seed in range(IMAGES_WAYS):
        with moved(path, "arrival_s", IMAGES_MOVED_S, seed) as copy:
            gains.append(tell_gain(f"moved, way {seed}", maitre, copy, 64, 0.9))
    tell_range("gain when moved, %", gains)
    print(f"moved, {sum(gain >= AIM for gain in gains)} of {len(gains)} reach {AIM} %")


def tell_gain(name, maitre, path, fleet, load):
    options = ["--fleet", str(fleet), "--load", str(load)]
    policies = "fifo,balanced:perfect,balanced:history"
    runs = simulate(maitre, path, *options, "--compare", policies)
    fifo, true, history = (run["wait_mean_s"] for run in runs)
    gain = 100 * (fifo - history) / (fifo - true)
    tails = ", ".join(f"{run['wait_p99_s']:.0f} {run['wait_max_s']:.0f}" for run in runs)
    print(f"{name:24} {fifo:7.0f} {true:7.0f} {history:7.0f} {gain:6.1f} %   {tails}", flush=True)
    return gain


def shares(maitre, path, fleet):
    options = ["--fleet", fleet, "--weights", "1,2,5", "--compare", "balanced,sfq"]
    options += ["--estimates", "perfect"]
    found = {"balanced": [], "sfq": []}
    for seed in range(SHARES_WAYS):
        with moved(path, "arrival_ms", SHARES_MOVED_MS, seed) as copy:
            for run in simulate(maitre, copy, *options):
                share = run["share"]
                figures = (share["jain"], 100 * share["error"], share["lag_slot_s"])
                figures += (run["wait_mean_s"], run["utilisation"])
                found[run["policy"]].append(figures)
    for policy, all_figures in found.items():
        columns = list(zip(*all_figures))
        for name, own in zip(("jain", "share error, %", "lag", "mean", "used"), columns):
            tell_range(f"{policy} {name}", own)
        jain, error, lag, mean, used = columns
        reached = {
            "jain": [own >= 0.9999 for own in jain],
            "share error": [own <= 1 for own in error],
            "lag": [own <= 300 for own in lag],
            "mean": [own <= 600 for own in mean],
            "used": [own >= 0.997 for own in used],
        }
        reached["all"] = [all(own) for own in zip(*reached.values())]
        told = ", ".join(f"{name} {sum(own)}" for name, own in reached.items())
        print(f"{policy}: of {len(lag)} replays reach {told}")


def tell_range(name, figures):
    figures = sorted(figures)
    low, middle, high = figures[0], figures[len(figures) // 2], figures[-1]
    print(f"{name}: {low:.5g} to {high:.5g}, half below {middle:.5g}")


def simulate(maitre, path, *options):
    command = [maitre, "simulate", path, *options, "--json"]
    said = subprocess.run(command, check=True, capture_output=True)
    return json.loads(said.stdout)["runs"]


class moved:
    """A copy of a trace with arrivals moved by up to this time in both directions, in order
    again."""

    def __init__(self, path, column, most, seed):
        self.path, self.column, self.most = path, column, most
        self.chance = random.Random(seed)

    def __enter__(self):
        with gzip.open(self.path, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            off = self.chance.randint(-self.most, self.most)
            row[self.column] = max(0, int(row[self.column]) + off)
        rows.sort(key=lambda row: row[self.column])
        self.folder = tempfile.TemporaryDirectory()
        copy = os.path.join(self.folder.name, "trace.csv")
        with open(copy, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return copy

    def __exit__(self, *_):
        self.folder.cleanup()


if __name__ == "__main__":
    main()
