"""An installed package is complete: the stubs are built, also from a source distribution."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parent.parent


def test_a_wheel_made_from_the_sources_has_stubs_and_types(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(line, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("maitre-*.whl")
    with ZipFile(wheel) as files:
        names = set(files.namelist())
        (about,) = (name for name in names if name.endswith("/METADATA"))
        needs = files.read(about).decode()
    assert {"maitre/py.typed", "maitre/v1/jobs_pb2.py", "maitre/v1/jobs_pb2_grpc.pyi"} <= names
    assert not any(name.startswith(("tests", "src")) for name in names)
    # The generated code names the versions that it needs.
    assert needs.count("Requires-Dist: grpcio>=") >= 2
