"""Wheels for Python: a zip of the program, a description and their digests. No Python code is in it."""

import base64
import hashlib
from pathlib import Path

from program import Program
from release import LICENSE, SUMMARY, Entry, Release, zip_


def write(program: Program, release: Release, out: Path) -> Path:
    tag = program.wheel_tag()
    info = f"toolcrib-{release.version}.dist-info"
    metadata = [
        "Metadata-Version: 2.4",
        "Name: toolcrib",
        f"Version: {release.version}",
        f"Summary: {SUMMARY}",
        f"License-Expression: {LICENSE}",
        "License-File: LICENSE",
        "Requires-Python: >=3.7",
        "Description-Content-Type: text/markdown",
        "",
        release.documents["README.md"].decode(),
    ]
    tags = [f"Tag: py3-none-{part}" for part in tag.split(".")]
    wheel = ["Wheel-Version: 1.0", "Generator: toolcrib", "Root-Is-Purelib: false", *tags, ""]
    files = [
        Entry(f"toolcrib-{release.version}.data/scripts/{program.file}", program.path.read_bytes(), 0o755),
        Entry(f"{info}/METADATA", "\n".join(metadata).encode()),
        Entry(f"{info}/WHEEL", "\n".join(wheel).encode()),
        Entry(f"{info}/licenses/LICENSE", release.documents["LICENSE"]),
    ]
    record = "".join(f"{file.name},sha256={_digest(file.content)},{len(file.content)}\n" for file in files)
    files.append(Entry(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
    path = out / f"toolcrib-{release.version}-py3-none-{tag}.whl"
    path.write_bytes(zip_(files, release))
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
