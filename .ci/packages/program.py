"""Facts about a built program from its bytes: the target it was built for, and what it needs of a system.

Nothing is run. The headers of ELF, PE and Mach-O are read, never the text of the program, so that a version in a message
changes nothing.
"""

import re
import struct
from dataclasses import dataclass
from pathlib import Path

INTERPRETER, LOAD, DYNAMIC = 3, 1, 2
NEEDED, STRINGS, VERSIONS, VERSION_COUNT = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
BUILD_VERSION, MINIMUM_VERSION, CODE_SIGNATURE = 0x32, 0x24, 0x1D

# Names of a processor for: Node.js, Debian, containers.
MACHINES = {"x86_64": ("x64", "amd64", "amd64"), "aarch64": ("arm64", "arm64", "arm64")}
SYSTEMS = {
    "unknown-linux-gnu": ("linux", "glibc"),
    "unknown-linux-musl": ("linux", "musl"),
    "pc-windows-gnu": ("win32", None),
    "pc-windows-msvc": ("win32", None),
    "apple-darwin": ("darwin", None),
}


class ProgramError(Exception):
    """A program for which there are no packages."""


@dataclass
class Program:
    """A program and the facts about it. `system` is the name that Node.js has for it."""

    path: Path
    triple: str
    machine: str
    system: str
    libc: str | None
    glibc: tuple[int, ...] | None = None
    macos: tuple[int, int] | None = None
    libraries: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return "toolcrib.exe" if self.system == "win32" else "toolcrib"

    @property
    def node(self) -> str:
        return MACHINES[self.machine][0]

    @property
    def debian(self) -> str:
        return MACHINES[self.machine][1]

    @property
    def container(self) -> str:
        return MACHINES[self.machine][2]

    @property
    def is_static(self) -> bool:
        return self.libc == "musl"

    def wheel_tag(self) -> str:
        """Platforms of a wheel with this program, the newest glibc that it asks for included."""
        if self.system == "darwin":
            major, minor = self.macos
            # Since version 11 the second number says nothing about compatibility, and installers look for 0.
            machine = "arm64" if self.machine == "aarch64" else self.machine
            return f"macosx_{major}_{0 if major >= 11 else minor}_{machine}"
        if self.system == "win32":
            return {"x86_64": "win_amd64", "aarch64": "win_arm64"}[self.machine]
        if self.is_static:
            return f"manylinux_2_17_{self.machine}.musllinux_1_1_{self.machine}"
        return f"manylinux_{'_'.join(map(str, self.glibc))}_{self.machine}"


def read(path: Path, triple: str | None = None) -> Program:
    """Reads a program. A given triple has to agree with the bytes, as far as they tell."""
    content = path.read_bytes()
    if content[:4] == b"\x7fELF":
        program = _elf(path, content)
    elif content[:2] == b"MZ":
        program = _pe(path, content)
    elif content[:4] == b"\xcf\xfa\xed\xfe":
        program = _macho(path, content)
    else:
        raise ProgramError(f"`{path}` is no program of Linux, Windows or macOS")
    if triple and triple != program.triple:
        # The bytes do not tell which compiler made a program for Windows.
        if not (triple.endswith("-pc-windows-msvc") and program.triple == triple.removesuffix("msvc") + "gnu"):
            raise ProgramError(f"`{path}` is a program for {program.triple}, and `{triple}` was given")
        program.triple = triple
    return program


def _program(path: Path, machine: str | None, rest: str, **facts) -> Program:
    if machine is None:
        raise ProgramError(f"`{path}` is for a processor without packages")
    system, libc = SYSTEMS[rest]
    return Program(path, f"{machine}-{rest}", machine, system, libc, **facts)


def _elf(path: Path, content: bytes) -> Program:
    if content[4:6] != b"\x02\x01":
        raise ProgramError(f"`{path}` is not for a little-endian processor with 64 bits")
    (machine,) = struct.unpack_from("<H", content, 18)
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    segments = [struct.unpack_from("<IIQQQQ", content, table + at * size) for at in range(count)]
    machine = {0x3E: "x86_64", 0xB7: "aarch64"}.get(machine)
    interpreter = next((content[offset : offset + length] for kind, _, offset, _, _, length in segments if kind == INTERPRETER), None)
    libraries, glibc = _needs(content, segments)
    if interpreter is None and not libraries:
        return _program(path, machine, "unknown-linux-musl")
    if b"ld-linux" not in (interpreter or b""):
        raise ProgramError(f"`{path}` is neither static nor linked with glibc: it needs {', '.join(libraries)}")
    return _program(path, machine, "unknown-linux-gnu", libraries=libraries, glibc=glibc)


def _needs(content: bytes, segments: list[tuple]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Libraries that an ELF program is linked with, and the newest version of glibc among the symbols that it asks for."""

    def offset(address: int) -> int:
        for kind, _, start, virtual, _, length in segments:
            if kind == LOAD and virtual <= address < virtual + length:
                return address - virtual + start
        raise ProgramError(f"no segment holds the address {address:#x}")

    start, length = next(((entry[2], entry[5]) for entry in segments if entry[0] == DYNAMIC), (0, 0))
    entries = list(struct.iter_unpack("<QQ", content[start : start + length]))
    values = dict(entries)
    strings = offset(values[STRINGS]) if STRINGS in values else 0

    def text(at: int) -> str:
        return content[strings + at : content.index(0, strings + at)].decode()

    newest, at = (2, 17), offset(values[VERSIONS]) if VERSIONS in values else 0
    for _ in range(values.get(VERSION_COUNT, 0)):
        _, symbols, _, first, following = struct.unpack_from("<HHIII", content, at)
        symbol = at + first
        for _ in range(symbols):
            _, _, _, name, further = struct.unpack_from("<IHHII", content, symbol)
            if match := re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", text(name)):
                newest = max(newest, (int(match[1]), int(match[2])))
            elif text(name) == "GLIBC_ABI_DT_RELR":
                newest = max(newest, (2, 36))
            symbol += further
        at += following
    return tuple(text(value) for tag, value in entries if tag == NEEDED), newest


def _pe(path: Path, content: bytes) -> Program:
    (header,) = struct.unpack_from("<I", content, 60)
    if content[header : header + 4] != b"PE\0\0":
        raise ProgramError(f"`{path}` is no program for Windows")
    (machine,) = struct.unpack_from("<H", content, header + 4)
    # The linker of Visual Studio lists its tools between the two headers.
    rest = "pc-windows-msvc" if b"Rich" in content[64:header] else "pc-windows-gnu"
    return _program(path, {0x8664: "x86_64", 0xAA64: "aarch64"}.get(machine), rest)


def _macho(path: Path, content: bytes) -> Program:
    (machine,) = struct.unpack_from("<I", content, 4)
    machine = {0x01000007: "x86_64", 0x0100000C: "aarch64"}.get(machine)
    (count,) = struct.unpack_from("<I", content, 16)
    at, macos, is_signed = 32, None, False
    for _ in range(count):
        command, size = struct.unpack_from("<II", content, at)
        if command in (BUILD_VERSION, MINIMUM_VERSION):
            (version,) = struct.unpack_from("<I", content, at + (12 if command == BUILD_VERSION else 8))
            macos = (version >> 16, version >> 8 & 0xFF)
        is_signed |= command == CODE_SIGNATURE
        at += size
    if macos is None:
        raise ProgramError(f"`{path}` names no oldest version of macOS")
    if machine == "aarch64" and not is_signed:
        raise ProgramError(f"`{path}` has no signature, and macOS runs no such program on this processor: `codesign --sign -` adds one")
    return _program(path, machine, "apple-darwin", macos=macos)
