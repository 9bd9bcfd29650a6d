"""A scheduler of its own for each test, and processes that are workers."""

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

# Nothing in these tests takes longer, even on a busy machine; in seconds.
PATIENCE = 60.0
# What is done again and again is done often, so that no test waits for it.
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
    """A scheduler in a folder, and whatever a test starts beside it."""

    def __init__(self, folder: Path, lease: str, settings: str) -> None:
        self.folder = folder
        (folder / "maitre.toml").write_text(SETTINGS.format(lease=lease) + settings)
        self.address = "127.0.0.1:0"
        self._scheduler: subprocess.Popen[str] | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    def launch(self) -> None:
        """Starts the scheduler, at the address that it had before if it ran before."""
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
        # Whoever does not read a pipe stops its writer.
        threading.Thread(target=errors.read, daemon=True).start()

    def run(self, *arguments: str) -> str:
        """What a command says."""
        line = [program(), *arguments]
        done = subprocess.run(
            line, cwd=self.folder, env=_environment(), check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def kill(self) -> None:
        """Kills the scheduler, without a word."""
        assert self._scheduler is not None
        self._scheduler.kill()
        self._scheduler.wait()

    def client(self) -> Client:
        """Somebody who asks."""
        return Client(self.address, patience=PATIENCE)

    def work(self, name: str, text: str) -> subprocess.Popen[bytes]:
        """Starts a worker in a process of its own: a program that has a `worker`."""
        whole = f"import pathlib, time\nfrom maitre import *\nname = {name!r}\n"
        whole += f"worker = Worker({self.address!r}, name=name, leave_grace=60, slots=2)\n"
        whole += f"{textwrap.dedent(text)}\nworker.run()\n"
        return self.start([sys.executable, "-c", whole])

    def start(self, line: list[str]) -> subprocess.Popen[bytes]:
        """Starts a process that lives no longer than the test."""
        process = subprocess.Popen(line, cwd=self.folder, env=_environment())
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Ends all that was started."""
        for process in (*self._processes, self._scheduler):
            if process is not None and process.poll() is None:
                # One that is stopped is not killed before it goes on.
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


@contextmanager
def site(folder: Path, lease: str = "1s", settings: str = "") -> Iterator[Site]:
    """A scheduler for as long as the block lasts."""
    here = Site(folder, lease, settings)
    try:
        here.launch()
        yield here
    finally:
        here.close()


def until(what: str, look: Callable[[], Value | None]) -> Value:
    """Looks until there is something to see."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        seen = look()
        if seen:
            return seen
        time.sleep(0.02)
    raise AssertionError(f"never came: {what}")


def program() -> str:
    """The `maitre` that is tested."""
    path = os.environ.get("MAITRE_PROGRAM")
    assert path, "MAITRE_PROGRAM must name the program `maitre`: use `cargo xtask python`"
    return path


def _environment() -> dict[str, str]:
    """Nothing of what surrounds a test changes what it does."""
    return {key: value for key, value in os.environ.items() if not key.startswith("MAITRE_")}
