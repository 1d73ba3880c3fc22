"""What all packages of a release share: version, description, date and the files beside the program; and archives of files
that do not depend on the machine or the hour."""

import gzip
import io
import os
import re
import subprocess
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = "Run tools for language-model agents in sandboxes"
LICENSE = "Apache-2.0"
SHELLS = {"bash": "toolcrib.bash", "zsh": "toolcrib.zsh", "fish": "toolcrib.fish", "powershell": "toolcrib.ps1"}
# The first moment that a zip can hold.
EARLIEST = 315532800


@dataclass
class Entry:
    """A file or, without content, a folder of an archive."""

    name: str
    content: bytes | None = None
    mode: int = 0o644
    owner: int = 0


@dataclass
class Release:
    """Facts that each package states."""

    version: str
    date: int
    completions: dict[str, bytes] = field(default_factory=dict)

    @property
    def documents(self) -> dict[str, bytes]:
        return {name: (ROOT / name).read_bytes() for name in ("README.md", "LICENSE", "CHANGELOG.md")}

    @property
    def timestamp(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.date))


def version() -> str:
    """Version of the workspace."""
    return re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def date() -> int:
    """`SOURCE_DATE_EPOCH`, or the time of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        given = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return max(int(given), EARLIEST)


def completions(program: Path) -> dict[str, bytes]:
    """Scripts for shells, printed by a program that runs on this machine."""
    scripts = {}
    for shell, name in SHELLS.items():
        scripts[name] = subprocess.run([program, "completions", shell], check=True, capture_output=True).stdout
    return scripts


def tar(entries: list[Entry], release: Release) -> bytes:
    """Packs entries into a tar, in the given order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.mode, info.mtime, info.uid, info.gid = entry.mode, release.date, entry.owner, entry.owner
            if entry.content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(entry.content)
                archive.addfile(info, io.BytesIO(entry.content))
    return buffer.getvalue()


def compress(content: bytes) -> bytes:
    """Compresses with gzip, without a name and a time."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def zip_(entries: list[Entry], release: Release) -> bytes:
    """Packs files into a zip, in the given order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry in entries:
            info = zipfile.ZipInfo(entry.name, time.gmtime(release.date)[:6])
            info.create_system, info.compress_type = 3, zipfile.ZIP_DEFLATED
            info.external_attr = (0o100000 | entry.mode) << 16
            archive.writestr(info, entry.content)
    return buffer.getvalue()


def folder() -> tempfile.TemporaryDirectory:
    """A folder for the tools that read and write files."""
    return tempfile.TemporaryDirectory(prefix="toolcrib-package-")
