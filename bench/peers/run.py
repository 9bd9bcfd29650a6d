"""Compares Maitre with what a user could pick instead, in one run on this machine."""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Name, script (or the folder of a crate), what pip or npm installs, and which server it keeps its
# jobs in.
PEERS = [
    ("hyperqueue", "hyperqueue_peer.py", ["hyperqueue"], None),
    ("dask", "dask_peer.py", ["dask[distributed]"], None),
    ("ray", "ray_peer.py", ["ray"], None),
    ("celery", "celery_peer.py", ["celery[redis]"], "redis"),
    ("bullmq", "bullmq_peer.mjs", ["bullmq", "ioredis"], "redis"),
    ("graphile-worker", "graphile_worker_peer.mjs", ["graphile-worker", "pg"], "postgres"),
    ("graphile_worker (crate)", "graphile_worker_crate", [], "postgres"),
    ("pg-boss", "pg_boss_peer.mjs", ["pg-boss@10", "pg"], "postgres"),
    ("procrastinate", "procrastinate_peer.py", ["procrastinate"], "postgres"),
]
# These keep nothing of jobs that succeeded, as they come or as they are set up here: they are
# compared with ours where it does not either, and the others with ours as it comes.
FORGETFUL = {"graphile-worker", "graphile_worker (crate)", "procrastinate"}
FORGETS = "maitre, postgres, --forget"
PATIENCE_S = 900


def main():
    options = arguments()
    place = options.keep or Path(tempfile.mkdtemp(prefix="maitre-peers-"))
    place.mkdir(parents=True, exist_ok=True)
    try:
        chosen = [peer for peer in PEERS if peer[0] in (options.only or [peer[0]])]
        works = {"maitre": (ours, options, "sqlite")}
        if any(server == "postgres" for *_, server in chosen):
            works["maitre, postgres"] = (ours, options, "postgres")
        if any(name in FORGETFUL for name, *_ in chosen):
            works[FORGETS] = (ours, options, "postgres", "--forget")
        for name, script, packages, server in chosen:
            works[name] = (peer, place, script, packages, server, options.jobs)
        figures = in_turns(works, options.rounds)
        print(json.dumps(figures, indent=2) if options.json else table(figures))
    finally:
        if not options.keep:
            shutil.rmtree(place, ignore_errors=True)


def in_turns(works, n_rounds):
    """The median of what each came to, one after the other and all of it again: a machine that is
    slower for a while is so for all of them."""
    seen = {name: [] for name in works}
    for n in range(n_rounds):
        for name, work in works.items():
            note(f"{name} ..." if n_rounds == 1 else f"{n + 1}/{n_rounds} {name} ...")
            seen[name].append(attempt(*work))
    return {name: median(rounds) for name, rounds in seen.items()}


def median(rounds):
    problems = [figures for figures in rounds if "problem" in figures]
    if problems:
        return problems[0]
    of = lambda key: [figures[key] for figures in rounds if figures.get(key)]
    return {key: statistics.median(of(key)) if of(key) else None for key in rounds[0]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maitre", type=Path, help="the binary, as built with --release")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs in each queue")
    parser.add_argument("--rounds", type=int, default=1, help="by turns; medians are shown")
    parser.add_argument("--only", nargs="*", help="only these peers")
    parser.add_argument("--keep", type=Path, help="install here, and leave it for the next run")
    parser.add_argument("--json", action="store_true", help="for machines")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    return options


def attempt(work, *values):
    """What came of it, or in one line why nothing did."""
    try:
        return work(*values)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or str(error)).strip().splitlines()
        return {"problem": said[-1] if said else str(error)}
    except (OSError, subprocess.TimeoutExpired, ValueError, TimeoutError) as error:
        return {"problem": str(error)}


def ours(options, store, *more):
    words = ["bench", "run", "--json", "--store", store, "--jobs", str(options.jobs), *more]
    settle()
    seen = json.loads(run([options.maitre.resolve(), *words]))
    return {
        "drained_per_s": seen["loads"][0]["drained_per_s"],
        "together_per_s": seen["together_per_s"],
        "start_p50_us": seen["start_idle"]["p50_us"],
    }


def settle():
    """What the one before left to be written is not for the next to wait for."""
    os.sync()


def peer(place, script, packages, server, n_jobs):
    environment = dict(os.environ)
    if script.endswith("_crate"):
        words = ["--release", "--quiet", "--manifest-path", HERE / script / "Cargo.toml"]
        run(["cargo", "build", *words, "--target-dir", place / "crates"])
        command = [place / "crates" / "release" / script.replace("_crate", "_peer")]
    elif script.endswith(".mjs"):
        node = place / "node"
        run(["npm", "install", "--silent", "--prefix", node, *packages])
        environment["PEERS_NODE"] = str(node)
        command = ["node", HERE / script]
    else:
        python = place / "python" / "bin"
        if not python.exists():
            run([sys.executable, "-m", "venv", python.parent])
        run([python / "pip", "install", "--quiet", *packages])
        environment["PATH"] = f"{python}{os.pathsep}{environment['PATH']}"
        environment["PYTHONPATH"] = str(HERE)
        command = [python / "python", HERE / script]
    command.append(str(n_jobs))
    settle()
    if server is None:
        return figures_of(run(command, environment))
    with SERVERS[server](place) as url:
        environment[f"PEERS_{server.upper()}"] = url
        return figures_of(run(command, environment))


@contextmanager
def redis(place):
    """A Redis of its own, as it comes: it writes to disk once a second."""
    if not shutil.which("redis-server"):
        run(["apt-get", "install", "-y", "-q", "redis-server"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
    with tempfile.TemporaryDirectory(dir=place) as data:
        server = subprocess.Popen(
            ["redis-server", *words, "--dir", data], stdout=subprocess.DEVNULL
        )
        try:
            time.sleep(1)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait()


@contextmanager
def postgres(place):
    """A Postgres of its own, set up as the one that ours starts for itself."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        run(["apt-get", "install", "-y", "-q", "postgresql"])
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = programs[-1].parent
    # A server does not run as root.
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    user = user if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="maitre-peers-pg-") as data:
        if user:
            shutil.chown(data, "postgres", "postgres")
        words = ["-A", "trust", "-U", "peers", "-E", "UTF8", "--locale=C", "--data-checksums"]
        run([*user, programs / "initdb", *words, "-D", f"{data}/data"])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = ["-D", f"{data}/data", "-k", data, "-p", str(port), "-h", "127.0.0.1"]
        words += ["-c", "max_connections=200", "-c", "max_wal_size=4GB"]
        words = [str(word) for word in [*user, programs / "postgres", *words]]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        try:
            is_ready = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
            for _ in range(300):
                if subprocess.run(is_ready).returncode == 0:
                    break
                time.sleep(0.1)
            yield f"postgres://peers@127.0.0.1:{port}/postgres"
        finally:
            server.terminate()
            server.wait()


SERVERS = {"redis": redis, "postgres": postgres}


def run(command, environment=None):
    command = [str(word) for word in command]
    ended = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    return ended.stdout


def figures_of(said):
    return json.loads(said.strip().splitlines()[-1])


def table(figures):
    """Each figure, and how many times ours is better: in the same kind of store, if there is one,
    and keeping what they keep."""
    lines = ["| | drained/s | together/s | start p50, µs | ours: drained | together | start |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    on_postgres = {name for name, *_, server in PEERS if server == "postgres"}
    for name, seen in figures.items():
        same = "maitre, postgres" if name in on_postgres else "maitre"
        mine = figures[FORGETS if name in FORGETFUL else same]
        if "problem" in seen:
            lines.append(f"| {name} | could not be measured here: {seen['problem']} |")
            continue
        keys = ["drained_per_s", "together_per_s", "start_p50_us"]
        plain = [f"{seen[key]:,.0f}" if seen.get(key) else "–" for key in keys]
        ratios = [ratio(mine.get(key), seen.get(key)) for key in keys[:2]]
        ratios.append(ratio(seen.get("start_p50_us"), mine.get("start_p50_us")))
        ratios = ["–"] * 3 if name.startswith("maitre") else ratios
        lines.append(f"| {name} | " + " | ".join(plain + ratios) + " |")
    return "\n".join(lines)


def ratio(better, worse):
    if not better or not worse:
        return "–"
    return f"{better / worse:.2f} ×" if better < 2 * worse else f"{better / worse:.1f} ×"


def note(text):
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
