"""The examples of the README are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.site import Site

README = Path(__file__).parent.parent / "README.md"


def test_the_first_examples_do_what_they_say(here: Site) -> None:
    worker, client, *_ = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    here.start([sys.executable, "-c", _at(worker, here)])
    line = [sys.executable, "-c", _at(client, here)]
    said = subprocess.run(line, check=True, capture_output=True, text=True).stdout.splitlines()
    assert "{'width': 320}" in said
    assert said[-2] == "job 2 is queued: no-worker-ever"


def _at(example: str, here: Site) -> str:
    assert "127.0.0.1:7070" in example
    return example.replace("127.0.0.1:7070", here.address)
