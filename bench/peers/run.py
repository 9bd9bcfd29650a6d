"""Compares Maitre with its alternatives, in one run on this machine."""

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
SERVER_OF = {"postgres": "postgres", "redis": "sqlite", None: "sqlite"}


class Peer(NamedTuple):
    """A system to compare with."""

    name: str
    # Or the folder of a crate.
    script: str
    # Packages for pip or npm.
    packages: list
    # The store of its jobs.
    server: str | None
    # The divisor of `--jobs` for its queue, so that a drain takes seconds and not minutes.
    part: int


PEERS = [
    Peer("hyperqueue", "hyperqueue_peer.py", ["hyperqueue"], None, 50),
    Peer("dask", "dask_peer.py", ["dask[distributed]"], None, 50),
    Peer("ray", "ray_peer.py", ["ray"], None, 20),
    Peer("celery", "celery_peer.py", ["celery[redis]"], "redis", 50),
    Peer("bullmq", "bullmq_peer.mjs", ["bullmq", "ioredis"], "redis", 4),
    Peer("graphile-worker", "graphile_worker_peer.mjs", ["graphile-worker", "pg"], "postgres", 1),
    Peer("graphile_worker (crate)", "graphile_worker_crate", [], "postgres", 1),
    Peer("pg-boss", "pg_boss_peer.mjs", ["pg-boss@10", "pg"], "postgres", 2),
    Peer("procrastinate", "procrastinate_peer.py", ["procrastinate"], "postgres", 100),
]
# One process for each core, with the scheduler.
ONE_WORKER = ["--workers", "1", "--slots", "2000"]
# Variants of Maitre, by the store of their peers. By default it keeps every job for a week, and
# with `--forget` it deletes succeeded jobs without a trace.
OURS = {
    "sqlite": {"maitre": []},
    "postgres": {"maitre, keeps all": ONE_WORKER, "maitre --forget": [*ONE_WORKER, "--forget"]},
}
# Fewer jobs give no useful result.
JOBS_MIN = 500
INSTALL_S = 3_600
PATIENCE_S = 900
FIGURES = {"drained_per_s": "drained", "together_per_s": "together", "start_p50_us": "start"}


def main():
    options = arguments()
    place = options.keep or Path(tempfile.mkdtemp(prefix="maitre-peers-"))
    place.mkdir(parents=True, exist_ok=True)
    try:
        reports = {}
        for store, names in OURS.items():
            peers = [peer for peer in PEERS if is_chosen(peer, store, options)]
            if peers:
                works = {name: (ours, options, store, words) for name, words in names.items()}
                works |= {peer.name: installed(peer, place, options.jobs) for peer in peers}
                reports[store] = report(in_turns(works, options.rounds), list(names))
        if options.json:
            print(json.dumps(reports, indent=2))
        else:
            print("\n\n".join(table(store, seen) for store, seen in reports.items()))
    finally:
        if not options.keep:
            shutil.rmtree(place, ignore_errors=True)


def is_chosen(peer, store, options):
    is_named = peer.name in (options.only or [peer.name])
    return is_named and SERVER_OF[peer.server] == store and options.store in (None, store)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("maitre", type=Path, help="the binary, as built with --release")
    parser.add_argument(
        "--store", choices=list(OURS), help="only those that are compared with ours on this store"
    )
    parser.add_argument(
        "--jobs", type=int, default=200_000, help="jobs in a queue; slow peers get fewer"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="by turns: medians, and how far ratios varied"
    )
    names = ", ".join(f"`{peer.name}`" for peer in PEERS)
    parser.add_argument("--only", nargs="*", metavar="PEER", help=f"only these: {names}")
    parser.add_argument("--keep", type=Path, help="install here, and leave it for the next run")
    parser.add_argument("--json", action="store_true", help="for machines")
    options = parser.parse_args()
    if options.rounds < 1 or options.jobs < 1:
        parser.error("--rounds and --jobs must be 1 or more")
    unknown = set(options.only or []) - {peer.name for peer in PEERS}
    if unknown:
        parser.error(f"there is no peer {', '.join(sorted(unknown))}; there are {names}")
    return options


def in_turns(works, n_rounds):
    """Runs all works in turn, several rounds, so that a slow phase of the machine affects all. Each
    round starts with a different work."""
    seen = {name: [] for name in works}
    for n in range(n_rounds):
        names = list(works)
        first = n % len(names)
        for name in names[first:] + names[:first]:
            note(f"{n + 1}/{n_rounds} {name} ...")
            begun = time.monotonic()
            seen[name].append(attempt(*works[name]))
            said = ", ".join(f"{key} {value}" for key, value in shown(seen[name][-1]).items())
            note(f"    {said} ({time.monotonic() - begun:.0f} s)")
    return seen


def attempt(work, *values):
    """The result, or the error in one line."""
    try:
        return work(*values)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or str(error)).strip().splitlines()
        return {"problem": said[-1] if said else str(error)}
    except (OSError, subprocess.TimeoutExpired, ValueError, TimeoutError) as error:
        return {"problem": str(error)}


def ours(options, store, words):
    words = ["bench", "run", "--as-peers", "--json", "--jobs", str(options.jobs), *words]
    command = [options.maitre.resolve(), *words]
    if store == "sqlite":
        settle()
        return json.loads(run(command))
    with postgres(None) as url:
        settle()
        return json.loads(run([*command, "--store", url]))


def settle():
    """Flushes the writes of the work before, so that the next does not wait for them."""
    os.sync()


def installed(peer, place, n_jobs):
    """Installs the peer. Returns the function that runs it, with its arguments."""
    note(f"installing {peer.name} ...")
    found = attempt(install, peer, place)
    if "problem" in found:
        return (lambda: found,)
    part = min(n_jobs, max(n_jobs // peer.part, JOBS_MIN))
    return (measure, [*found["command"], part], found["environment"], peer.server, place)


def install(peer, place):
    environment = dict(os.environ)
    if peer.script.endswith("_crate"):
        words = ["--release", "--quiet", "--manifest-path", HERE / peer.script / "Cargo.toml"]
        run(["cargo", "build", *words, "--target-dir", place / "crates"], patience_s=INSTALL_S)
        command = [place / "crates" / "release" / peer.script.replace("_crate", "_peer")]
    elif peer.script.endswith(".mjs"):
        node = place / "node"
        run(["npm", "install", "--silent", "--prefix", node, *peer.packages], patience_s=INSTALL_S)
        environment["PEERS_NODE"] = str(node)
        command = ["node", HERE / peer.script]
    else:
        python = place / "python" / "bin"
        if not python.exists():
            run([sys.executable, "-m", "venv", python.parent])
        run([python / "pip", "install", "--quiet", *peer.packages], patience_s=INSTALL_S)
        environment["PATH"] = f"{python}{os.pathsep}{environment['PATH']}"
        environment["PYTHONPATH"] = str(HERE)
        command = [python / "python", HERE / peer.script]
    return {"command": command, "environment": environment}


def measure(command, environment, server, place):
    if server is None:
        settle()
        return figures_of(run(command, environment))
    with SERVERS[server](place) as url:
        settle()
        return figures_of(run(command, {**environment, f"PEERS_{server.upper()}": url}))


@contextmanager
def redis(place):
    """A private Redis with its defaults: it writes to disk once a second."""
    if not shutil.which("redis-server"):
        run(["apt-get", "install", "-y", "-q", "redis-server"], patience_s=INSTALL_S)
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
def postgres(_):
    """A private Postgres, the same for peers and for Maitre. It has its defaults but for more
    connections and a larger log. All connect through its socket."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        run(["apt-get", "install", "-y", "-q", "postgresql"], patience_s=INSTALL_S)
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = programs[-1].parent
    # A Postgres server refuses to run as root.
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    user = user if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="maitre-peers-pg-") as data:
        if user:
            shutil.chown(data, "postgres", "postgres")
        words = ["-A", "trust", "-U", "peers", "-E", "UTF8", "--locale=C", "--data-checksums"]
        run([*user, programs / "initdb", *words, "-D", f"{data}/data"])
        words = ["-D", f"{data}/data", "-k", data, "-c", "listen_addresses="]
        words += ["-c", "max_connections=200", "-c", "max_wal_size=4GB"]
        words = [str(word) for word in [*user, programs / "postgres", *words]]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        try:
            is_ready = [str(programs / "pg_isready"), "-q", "-h", data]
            for _ in range(300):
                if subprocess.run(is_ready, check=False).returncode == 0:
                    break
                time.sleep(0.1)
            yield f"postgres://peers@{quote(data, safe='')}/postgres"
        finally:
            # A fast shutdown: it does not wait for open sessions.
            server.send_signal(signal.SIGINT)
            server.wait()


SERVERS = {"redis": redis, "postgres": postgres}


def run(command, environment=None, patience_s=PATIENCE_S):
    command = [str(word) for word in command]
    ended = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=patience_s
    )
    return ended.stdout


def figures_of(said):
    return json.loads(said.strip().splitlines()[-1])


def report(rounds, names):
    """Medians, and the ratio of each variant of Maitre to each peer."""
    medians = {name: median(seen) for name, seen in rounds.items()}
    peers = [name for name in rounds if name not in names]
    ratios = {
        peer: {name: ratios_of(rounds[name], rounds[peer]) for name in names} for peer in peers
    }
    return {"medians": medians, "ratios": ratios, "rounds": rounds}


def median(seen):
    problems = [figures for figures in seen if "problem" in figures]
    if problems:
        return problems[0]
    return {key: middle(figures.get(key) for figures in seen) for key in ["jobs", *FIGURES]}


def middle(values):
    values = [value for value in values if value]
    return statistics.median(values) if values else None


def ratios_of(mine, theirs):
    """Ratios within each round, because both met the same load of the machine."""
    found = {}
    for key in FIGURES:
        pairs = [(one.get(key), other.get(key)) for one, other in zip(mine, theirs, strict=True)]
        # For durations, less is better.
        pairs = [(b, a) if key.endswith("_us") else (a, b) for a, b in pairs]
        ratios = [a / b for a, b in pairs if a and b]
        found[key] = (
            {"median": middle(ratios), "min": min(ratios), "max": max(ratios)} if ratios else None
        )
    return found


def table(store, seen):
    """The table of results, with the ratios below."""
    names = list(OURS[store])
    lines = [f"| on {store} | jobs | drained/s | together/s | start p50, µs |"]
    lines.append("| --- " + "| ---: " * 4 + "|")
    for name, figures in seen["medians"].items():
        cells = list(shown(figures).values())
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    columns = [f"{name}: {what}" for name in names for what in FIGURES.values()]
    lines += ["", "| times better | " + " | ".join(columns) + " |"]
    lines.append("| --- " + "| ---: " * len(columns) + "|")
    for peer, ratios in seen["ratios"].items():
        cells = [times(ratios[name][key]) for name in names for key in FIGURES]
        lines.append(f"| than {peer} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shown(figures):
    if "problem" in figures:
        return {"problem": figures["problem"]}
    named = {"jobs": "jobs", **FIGURES}
    whole = {what: figures.get(key) for key, what in named.items()}
    return {what: f"{value:,.0f}" if value else "–" for what, value in whole.items()}


def times(ratio):
    if ratio is None:
        return "–"
    digits = 2 if ratio["median"] < 10 else 0
    one = f"{ratio['median']:.{digits}f} ×"
    if ratio["min"] == ratio["max"]:
        return one
    return f"{one} ({ratio['min']:.{digits}f}..{ratio['max']:.{digits}f})"


def note(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
