"""The examples of the README work."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.site import Site, program

PACKAGE = Path(__file__).parent.parent


def test_the_first_examples_do_what_they_say(here: Site) -> None:
    worker, client, *_ = examples(PACKAGE, here)
    here.start([sys.executable, "-c", worker])
    said = run(client)
    assert "{'width': 320}" in said
    assert said[-2] == "job 2 is queued: no-worker-ever"


def test_the_example_of_the_project_does_what_it_says(here: Site) -> None:
    (client,) = examples(PACKAGE.parent, here)
    here.start([program(), "--server", here.address, "work", "--exec", "--name", "w1"])
    said = run(client)
    assert said[:2] == ["succeeded", "job 2 is queued: no-worker-ever"]


def examples(folder: Path, here: Site) -> list[str]:
    """The Python code of a README, with the addresses of the test."""
    found = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    return [text.replace("127.0.0.1:7070", here.address) for text in found]


def run(client: str) -> list[str]:
    """Its output, line by line."""
    line = [sys.executable, "-c", client]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout.splitlines()
