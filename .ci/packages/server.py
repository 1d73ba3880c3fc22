"""A server on loopback for the trials: the files of a release, and the npm packages among them as a registry has them."""

import base64
import hashlib
import io
import json
import ssl
import subprocess
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


class Server:
    """Serves a folder under `/files/` and its npm packages under `/npm/`, until it is closed; encrypted with the certificate
    of [`certify`], if one is given."""

    def __init__(self, folder: Path, certificate: Path | None = None) -> None:
        folder = folder.absolute()
        handler = type("Handler", (Handler,), {"folder": folder})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        # A client that hangs up is not an error of the trial.
        self.server.handle_error = lambda *_: None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"http{'s' if certificate else ''}://127.0.0.1:{self.server.server_port}"
        handler.packages = {name: package for name, package in map(self.describe, sorted(folder.glob("*.tgz")))}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def describe(self, path: Path) -> tuple[str, dict]:
        """Name and description of a package, as a registry answers it."""
        content = path.read_bytes()
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            package = json.load(archive.extractfile("package/package.json"))
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
        package["dist"] = {"tarball": f"{self.address}/files/{path.name}", "integrity": integrity}
        name, version = package["name"], package["version"]
        return name, {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}

    def close(self) -> None:
        self.server.shutdown()


def certify(folder: Path) -> tuple[Path, Path]:
    """Creates an authority and a certificate of it for this machine, for one trial."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2"]
    authority, certificate = folder / "authority.pem", folder / "server.pem"
    options = ["-keyout", folder / "authority.key", "-out", authority, "-subj", "/CN=trial"]
    subprocess.run(["openssl", "req", "-x509", *key, *options], check=True, capture_output=True)
    options = ["-keyout", folder / "server.key", "-out", certificate, "-subj", "/CN=127.0.0.1", "-CA", authority, "-CAkey", folder / "authority.key"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(["openssl", "req", "-x509", *key, *options, *names], check=True, capture_output=True)
    certificate.write_bytes(certificate.read_bytes() + (folder / "server.key").read_bytes())
    return authority, certificate


class Handler(BaseHTTPRequestHandler):
    folder: Path
    packages: dict[str, dict]

    def do_GET(self) -> None:
        kind, _, name = unquote(self.path).lstrip("/").partition("/")
        if kind == "npm" and name in self.packages:
            self.answer("application/json", json.dumps(self.packages[name]).encode())
        elif kind == "files" and "/" not in name and (self.folder / name).is_file():
            self.answer("application/octet-stream", (self.folder / name).read_bytes())
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def answer(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_) -> None:
        pass
