"""Archives: a `.tar.gz`, or a `.zip` for Windows, with one folder that holds the program, its completions and its documents."""

from pathlib import Path

from program import Program
from release import Entry, Release, compress, tar, zip_


def name(release: Release, program: Program) -> str:
    return f"toolcrib-{release.version}-{program.triple}"


def file(release: Release, program: Program) -> str:
    """Name of the archive, which `cargo binstall` and the installers form too."""
    return name(release, program) + (".zip" if program.system == "win32" else ".tar.gz")


def write(program: Program, release: Release, out: Path) -> Path:
    top = name(release, program)
    files = [Entry(f"{top}/{program.file}", program.path.read_bytes(), 0o755)]
    files += [Entry(f"{top}/{document}", content) for document, content in release.documents.items()]
    files += [Entry(f"{top}/completions/{script}", content) for script, content in release.completions.items()]
    if program.system == "win32":
        content = zip_(files, release)
    else:
        folders = [Entry(top, mode=0o755), Entry(f"{top}/completions", mode=0o755)]
        content = compress(tar(folders + files, release))
    path = out / file(release, program)
    path.write_bytes(content)
    return path
