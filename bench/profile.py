"""Profiles the CPU time of one job that does nothing, from its submission to its end.

    export CARGO_PROFILE_RELEASE_LTO=off RUSTFLAGS="-C force-frame-pointers=yes"
    export CFLAGS="-fno-omit-frame-pointer"
    cargo build --release
    python3 bench/profile.py target/release/maitre

Runs the benchmark under `perf`, and sorts its samples into stages by their stacks: the first
matching line of STAGES counts. Only CPU time is counted, not blocked time.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

N_JOBS = 200_000
# In addition to the drained queue, as many jobs are submitted and run at once.
N_TOGETHER = N_JOBS
HERTZ = 997

# The process, the stage, and a pattern for the stack.
STAGES = [
    ("scheduler", "store: taking in (submit)", r"store::sqlite::(submit::|row::insert_(job|spec))"),
    ("scheduler", "store: claims", r"store::sqlite::claim::"),
    ("scheduler", "store: starts", r"store::sqlite::start::"),
    ("scheduler", "store: ends (complete)", r"store::sqlite::(complete|settle)::"),
    ("scheduler", "store: copying the log to the file", r"checkpoint"),
    ("scheduler", "store: waiting for the disk, answering", r"store::sqlite::disk"),
    ("scheduler", "store: commits", r"store::sqlite::writer"),
    ("scheduler", "decide", r"decide::round|World>?::decide"),
    ("scheduler", "world: events", r"decide::"),
    ("scheduler", "round: claims, offers", r"::(round|claimed|won|flush_workers)\b"),
    ("scheduler", "owner of the world: the rest", r"server::scheduler|server::dispatch"),
    ("scheduler", "door of jobs", r"server::edge::jobs|server::submit"),
    ("scheduler", "door of workers", r"server::edge::worker|server::fleet::words"),
    ("scheduler", "wire and runtime", r""),
    ("worker", "attempts", r"worker::(life|attempt)"),
    ("worker", "outbox", r"worker::outbox|worker::session::write"),
    ("worker", "offers, wire and runtime", r""),
    ("submitter", "submitting, looking", r""),
]


def main():
    binary = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        data = os.path.join(place, "perf.data")
        words = ["bench", "run", "--as-peers", "--jobs", str(N_JOBS), *sys.argv[2:]]
        record = ["perf", "record", "-q", "-F", str(HERTZ), "-g", "-o", data, "--", binary, *words]
        subprocess.run(record, check=True, stdout=subprocess.DEVNULL)
        fields = ["-F", "comm,pid,tid,ip,sym", "--no-inline", "-i", data]
        said = subprocess.run(["perf", "script", *fields], capture_output=True, text=True)
    samples = list(read(said.stdout))
    print(table(samples))


def read(text):
    """Each sample: the thread's name, the process, and the function names of its stack as one
    text."""
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if lines:
            found = re.match(r"(.*?)\s+(\d+)/(\d+)", lines[0].strip())
            if found:
                yield found[1], int(found[2]), "\n".join(lines[1:])


def table(samples):
    threads = collections.defaultdict(collections.Counter)
    for thread, process, _ in samples:
        threads[process][thread] += 1
    counts = collections.Counter()
    for _, process, stack in samples:
        role = role_of(threads[process])
        stage = next((s for s in STAGES if s[0] == role and re.search(s[2], stack)), None)
        counts[stage] += 1
    counts.pop(None, None)
    total = sum(counts.values())
    lines = ["| process | stage | µs a job | share |", "| --- | --- | ---: | ---: |"]
    for stage in STAGES:
        micros = counts[stage] / HERTZ / (N_JOBS + N_TOGETHER) * 1e6
        share = 100 * counts[stage] / max(total, 1)
        lines.append(f"| {stage[0]} | {stage[1]} | {micros:.1f} | {share:.0f} % |")
    micros = total / HERTZ / (N_JOBS + N_TOGETHER) * 1e6
    lines.append(f"| all | | {micros:.1f} | |")
    return "\n".join(lines)


def role_of(threads):
    if "maitre-worker" in threads:
        return "worker"
    # The benchmark itself also opens a store for a short time.
    is_scheduler = threads["store-write"] > sum(threads.values()) / 20
    return "scheduler" if is_scheduler else "submitter"


if __name__ == "__main__":
    main()
