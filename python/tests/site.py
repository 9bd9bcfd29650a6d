"""A scheduler for each test, and processes of workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from maitre import Client

# Timeout of each step, also on a busy machine, in seconds.
PATIENCE = 60.0
# Short intervals, so that no test waits for them.
SETTINGS = """
heartbeat = "100ms"
lease = "{lease}"
expire_every = "100ms"
stop_grace = "300ms"
reconnect = "50ms"
reconnect_max = "200ms"
"""

Value = TypeVar("Value")


class Site:
    """A scheduler in a folder, and the other processes of a test."""

    def __init__(self, folder: Path, lease: str, settings: str) -> None:
        self.folder = folder
        (folder / "maitre.toml").write_text(SETTINGS.format(lease=lease) + settings)
        self.address = "127.0.0.1:0"
        self._scheduler: subprocess.Popen[str] | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    def launch(self) -> None:
        """Starts the scheduler, at its earlier address if it ran before."""
        line = [program(), "serve", "--listen", self.address, "--data-dir", "data"]
        self._scheduler = subprocess.Popen(
            line, cwd=self.folder, env=_environment(), stderr=subprocess.PIPE, text=True
        )
        errors = self._scheduler.stderr
        assert errors is not None
        first = errors.readline()
        words = first.split()
        assert "on" in words, f"it does not listen: {first}"
        self.address = words[words.index("on") + 1].rstrip(",")
        # A full pipe without a reader would block its writer.
        threading.Thread(target=errors.read, daemon=True).start()

    def run(self, *arguments: str) -> str:
        """The output of a command."""
        line = [program(), *arguments]
        done = subprocess.run(
            line, cwd=self.folder, env=_environment(), check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def kill(self) -> None:
        """Kills the scheduler with SIGKILL."""
        assert self._scheduler is not None
        self._scheduler.kill()
        self._scheduler.wait()

    def client(self) -> Client:
        """A client of the scheduler."""
        return Client(self.address, patience=PATIENCE)

    def work(self, name: str, text: str) -> subprocess.Popen[bytes]:
        """Starts a worker process: a program with a `worker`."""
        whole = f"import pathlib, time\nfrom maitre import *\nname = {name!r}\n"
        whole += f"worker = Worker({self.address!r}, name=name, leave_grace=60, slots=2)\n"
        whole += f"{textwrap.dedent(text)}\nworker.run()\n"
        return self.start([sys.executable, "-c", whole])

    def start(self, line: list[str]) -> subprocess.Popen[bytes]:
        """Starts a process that is killed at the end of the test."""
        process = subprocess.Popen(line, cwd=self.folder, env=_environment())
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Ends all processes."""
        for process in (*self._processes, self._scheduler):
            if process is not None and process.poll() is None:
                # A suspended process must continue before it can end.
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


@contextmanager
def site(folder: Path, lease: str = "1s", settings: str = "") -> Iterator[Site]:
    """A scheduler until the end of the block."""
    here = Site(folder, lease, settings)
    try:
        here.launch()
        yield here
    finally:
        here.close()


def until(what: str, look: Callable[[], Value | None]) -> Value:
    """Polls until there is a result."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        seen = look()
        if seen:
            return seen
        time.sleep(0.02)
    raise AssertionError(f"never came: {what}")


def program() -> str:
    """The path of `maitre`."""
    path = os.environ.get("MAITRE_PROGRAM")
    assert path, "MAITRE_PROGRAM must name the program `maitre`: use `cargo xtask python`"
    return path


def _environment() -> dict[str, str]:
    """An environment without the variables that change the behaviour of `maitre`."""
    return {key: value for key, value in os.environ.items() if not key.startswith("MAITRE_")}
