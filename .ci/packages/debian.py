"""Debian packages, by `dpkg-deb`. One per processor: dynamic where there is such a program, else static."""

import hashlib
import os
import subprocess
from pathlib import Path

from program import Program
from release import SUMMARY, Release, folder

# Packages of the libraries that a program may be linked with; all others would be a mistake in the build.
LIBRARIES = {
    "libc.so.6": "libc6",
    "libm.so.6": "libc6",
    "ld-linux-x86-64.so.2": "libc6",
    "ld-linux-aarch64.so.1": "libc6",
    "libgcc_s.so.1": "libgcc-s1",
}


def write(program: Program, release: Release, out: Path) -> Path:
    files = {
        "usr/bin/toolcrib": program.path.read_bytes(),
        "usr/share/doc/toolcrib/copyright": release.documents["LICENSE"],
        "usr/share/bash-completion/completions/toolcrib": release.completions["toolcrib.bash"],
        "usr/share/zsh/vendor-completions/_toolcrib": release.completions["toolcrib.zsh"],
        "usr/share/fish/vendor_completions.d/toolcrib.fish": release.completions["toolcrib.fish"],
    }
    control = [
        "Package: toolcrib",
        f"Version: {release.version}",
        f"Architecture: {program.debian}",
        "Maintainer: The toolcrib contributors",
        "Section: utils",
        "Priority: optional",
        f"Installed-Size: {sum(len(content) + 1023 >> 10 for content in files.values())}",
    ]
    depends = {LIBRARIES[library] for library in program.libraries}
    if program.glibc:
        depends = depends - {"libc6"} | {f"libc6 (>= {program.glibc[0]}.{program.glibc[1]})"}
    if depends:
        control.append(f"Depends: {', '.join(sorted(depends))}")
    control.append(f"Description: {SUMMARY}")
    sums = [f"{hashlib.md5(content).hexdigest()}  {name}" for name, content in files.items()]
    with folder() as work:
        root = Path(work) / "root"
        for name, content in files.items():
            _put(root / name, content, 0o755 if name.startswith("usr/bin/") else 0o644)
        _put(root / "DEBIAN/control", "\n".join([*control, ""]).encode(), 0o644)
        _put(root / "DEBIAN/md5sums", "\n".join([*sums, ""]).encode(), 0o644)
        path = out / f"toolcrib_{release.version}_{program.debian}.deb"
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(release.date)}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return path


def _put(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
