"""Generates the protobuf code when a package is built, or installed for development.

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
# In this folder in a source distribution, and with the Rust crate in the repository.
PROTOS = [HERE / "proto", HERE.parent / "crates" / "proto" / "proto"]


class Generate(BuildHookInterface):  # type: ignore[type-arg]
    """Puts `maitre.v1` into a wheel, or beside the sources of an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generates the code, and adds its dependencies to the package."""
        if self.target_name != "wheel":
            return
        generate()
        needed = metadata.requires("grpcio-tools") or []
        names = ("grpcio", "protobuf")
        build_data["dependencies"] = [one for one in needed if one.startswith(names)]


def generate() -> None:
    """Generates `maitre/v1` again."""
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
    """An environment in which `protoc` finds its plugins: in the scripts folder of this Python."""
    import os
    import sysconfig

    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path}


if __name__ == "__main__":
    generate()
