"""A container image as an OCI image layout in a tar, written without a daemon: one static program per processor, one index.

The image has no shell and no package manager. The program runs as a user without rights (65532) with a home, a folder for
temporary files and the working folder `/work`. The certificates of the authorities that Debian trusts are the only file of
another project; a mounted file at `/etc/ssl/certs/ca-certificates.crt` replaces them.
"""

import hashlib
import json
from pathlib import Path

from program import Program
from release import LICENSE, SUMMARY, Entry, Release, compress, tar

USER = 65532
HOME = "/home/toolcrib"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
TYPE = "application/vnd.oci.image"


class Layout:
    """Blobs of an image layout, each named by its digest."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def add(self, media_type: str, content: bytes | dict) -> dict:
        """Adds a blob and returns its descriptor."""
        if isinstance(content, dict):
            content = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def entries(self, index: dict) -> list[Entry]:
        files = [Entry("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')]
        files.append(Entry("index.json", json.dumps(index, separators=(",", ":"), sort_keys=True).encode()))
        folders = [Entry("blobs", mode=0o755), Entry("blobs/sha256", mode=0o755)]
        return files + folders + [Entry(f"blobs/sha256/{digest}", self.blobs[digest]) for digest in sorted(self.blobs)]


def root(program: Program, release: Release) -> list[Entry]:
    """Files of the image."""
    folders = ["etc", "etc/ssl", "etc/ssl/certs", "home", "usr", "usr/bin", "usr/share", "usr/share/doc", "usr/share/doc/toolcrib"]
    entries = [Entry(name, mode=0o755) for name in folders]
    entries += [
        Entry(HOME[1:], mode=0o700, owner=USER),
        Entry("tmp", mode=0o1777),
        Entry("work", mode=0o755, owner=USER),
        Entry("etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\ntoolcrib:x:{USER}:{USER}::{HOME}:/sbin/nologin\n".encode()),
        Entry("etc/group", f"root:x:0:\ntoolcrib:x:{USER}:\n".encode()),
        Entry("usr/bin/toolcrib", program.path.read_bytes(), 0o755),
        Entry("usr/share/doc/toolcrib/LICENSE", release.documents["LICENSE"]),
    ]
    if Path(CERTIFICATES).exists():
        entries.append(Entry(CERTIFICATES[1:], Path(CERTIFICATES).read_bytes()))
    return sorted(entries, key=lambda entry: entry.name)


def write(programs: list[Program], release: Release, out: Path) -> Path:
    layout = Layout()
    labels = {
        "org.opencontainers.image.title": "toolcrib",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.licenses": LICENSE,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.created": release.timestamp,
    }
    manifests = []
    for program in sorted(programs, key=lambda program: program.container):
        files = tar(root(program, release), release)
        platform = {"architecture": program.container, "os": "linux"}
        config = {
            **platform,
            "created": release.timestamp,
            "config": {
                "User": f"{USER}:{USER}",
                "Entrypoint": ["/usr/bin/toolcrib"],
                "Env": ["PATH=/usr/bin", f"HOME={HOME}"],
                "WorkingDir": "/work",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(files).hexdigest()}"]},
            "history": [{"created": release.timestamp, "created_by": "toolcrib"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{TYPE}.manifest.v1+json",
            "config": layout.add(f"{TYPE}.config.v1+json", config),
            "layers": [layout.add(f"{TYPE}.layer.v1.tar+gzip", compress(files))],
            "annotations": labels,
        }
        manifests.append({**layout.add(manifest["mediaType"], manifest), "platform": platform})
    index = {"schemaVersion": 2, "mediaType": f"{TYPE}.index.v1+json", "manifests": manifests, "annotations": labels}
    name = {"org.opencontainers.image.ref.name": f"toolcrib:{release.version}"}
    top = {"schemaVersion": 2, "manifests": [{**layout.add(index["mediaType"], index), "annotations": name}]}
    path = out / f"toolcrib-{release.version}-image.tar"
    path.write_bytes(tar(layout.entries(top), release))
    return path
