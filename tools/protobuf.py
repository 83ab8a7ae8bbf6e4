"""Writes the gRPC messages: `python -m tools.protobuf`, or `make generate`.

Only the messages and their types are generated. Methods are bound by hand (holdfast/api/grpc, holdfast/client/remote):
generated stubs would refuse to load under a grpcio older than the generator's. With `--check` nothing is written; the
exit code says whether the files are up to date.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROTO = ROOT / "proto" / "holdfast.proto"
TARGET = ROOT / "src" / "holdfast" / "transport" / "grpc"
NAMES = ("holdfast_pb2.py", "holdfast_pb2.pyi")


def generate(folder: Path) -> None:
    from grpc_tools import protoc  # noqa: PLC0415 - slow to load, and only here

    known = resources.files("grpc_tools") / "_proto"
    arguments = ["protoc", f"-I{PROTO.parent}", f"-I{known}", f"--python_out={folder}", f"--pyi_out={folder}"]
    if protoc.main([*arguments, PROTO.name]):
        raise SystemExit(f"{PROTO} could not be compiled: see above")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.protobuf", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say whether the files are up to date")
    check = parser.parse_args().check
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        for name in NAMES:
            made, kept = (Path(folder) / name).read_bytes(), TARGET / name
            if not kept.exists() or kept.read_bytes() != made:
                stale.append(name)
                if not check:
                    kept.write_bytes(made)
    if check and stale:
        print(f"out of date: {', '.join(stale)}; run: make generate", file=sys.stderr)  # noqa: T201 - its answer
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
