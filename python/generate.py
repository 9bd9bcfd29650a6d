"""Generates the Python side of the wire, when a package is built or installed to be worked on.

By hand: `python generate.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).resolve().parent
OUT = HERE / "src" / "maitre" / "v1"
# Beside us in a source distribution, and with the scheduler in the repository.
PROTOS = [HERE / "proto", HERE.parent / "crates" / "proto" / "proto"]


class Generate(BuildHookInterface):  # type: ignore[type-arg]
    """Puts `maitre.v1` into a wheel, or beside the sources if they are installed to be edited."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generates; the package then needs what the generated code needs."""
        if self.target_name != "wheel":
            return
        generate()
        needed = metadata.requires("grpcio-tools") or []
        names = ("grpcio", "protobuf")
        build_data["dependencies"] = [one for one in needed if one.startswith(names)]


def generate() -> None:
    """Writes `maitre/v1` anew."""
    root = next((path for path in PROTOS if path.is_dir()), None)
    if root is None:
        raise SystemExit(f"there is no folder of .proto files: {' or '.join(map(str, PROTOS))}")
    protos = sorted(str(path.relative_to(root)) for path in root.glob("maitre/v1/*.proto"))
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    source = HERE / "src"
    outs = ["python_out", "grpc_python_out", "mypy_out", "mypy_grpc_out"]
    arguments = [f"--{out}={source}" for out in outs]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={root}", *arguments]
    subprocess.run([*command, *protos], check=True, env=_with_plugins())
    (OUT / "__init__.py").write_text('"""The wire, as generated from `maitre/v1/*.proto`."""\n')


def _with_plugins() -> dict[str, str]:
    """Plugins of `protoc` are found where this Python keeps its programs."""
    import os
    import sysconfig

    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path}


if __name__ == "__main__":
    generate()
