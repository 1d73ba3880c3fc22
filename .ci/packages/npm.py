"""npm packages, by `npm pack`: one per platform with its program, and the starter that depends on all of them, of which npm
installs the one that fits. Nothing is downloaded at the time of the installation."""

import json
import subprocess
from pathlib import Path

from program import Program
from release import LICENSE, SUMMARY, Release, folder

START = Path(__file__).with_name("start.js")


def name(program: Program) -> str:
    """Name of the package of a platform; `start.js` forms the same."""
    libc = {"glibc": "-gnu", "musl": "-musl", None: ""}[program.libc]
    return f"@toolcrib/{program.system}-{program.node}{libc}"


def write(programs: list[Program], release: Release, out: Path) -> list[Path]:
    common = {"version": release.version, "description": SUMMARY, "license": LICENSE}
    documents = release.documents
    with folder() as work:
        folders = []
        for program in programs:
            package = {"name": name(program), **common, "os": [program.system], "cpu": [program.node]}
            # A static program is for systems without glibc, or for all where there is no other.
            if program.libc and (not program.is_static or _has_glibc_twin(program, programs)):
                package["libc"] = [program.libc]
            package |= {"files": ["bin"], "preferUnplugged": True}
            files = {f"bin/{program.file}": program.path.read_bytes(), "LICENSE": documents["LICENSE"]}
            folders.append(_package(Path(work) / program.triple, package, files))
        starter = {
            "name": "toolcrib",
            **common,
            "bin": {"toolcrib": "start.js"},
            "files": ["start.js"],
            "engines": {"node": ">=18"},
            "optionalDependencies": {name(program): release.version for program in programs},
        }
        files = {"start.js": START.read_bytes(), "LICENSE": documents["LICENSE"], "README.md": documents["README.md"]}
        folders.append(_package(Path(work) / "starter", starter, files))
        command = ["npm", "pack", "--silent", "--offline", *folders]
        lines = subprocess.run(command, cwd=out, check=True, capture_output=True, text=True).stdout.split()
    return [out / line for line in lines]


def _has_glibc_twin(program: Program, programs: list[Program]) -> bool:
    return any(other.libc == "glibc" and other.machine == program.machine for other in programs)


def _package(path: Path, package: dict, files: dict[str, bytes]) -> Path:
    for file, content in {"package.json": json.dumps(package, indent=2).encode() + b"\n", **files}.items():
        (path / file).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        (path / file).write_bytes(content)
        (path / file).chmod(0o755 if file.startswith("bin/") or file == "start.js" else 0o644)
    return path
