"""Machines with their own network, addresses and clocks, on one switch; certificates; an identity provider; a balancer.

The switch is in a network namespace of the check, which a check enters by `enter`: nothing leaves it, and all of it ends with
the processes.
"""

import glob, json, os, pathlib, shutil, signal, socket, subprocess, sys, time, urllib.parse, urllib.request

from fleet import not_tried

NETWORK = "10.77.0"
# Debian has servers where only the administrator's path leads.
os.environ["PATH"] += ":/usr/sbin"


def enter():
    """Starts the check again in a network namespace of its own."""
    if os.environ.get("TOOLCRIB_NETWORK"):
        return
    if os.getuid() != 0:
        not_tried("network namespaces need an administrator")
    for program in ["unshare", "nsenter", "ip", "openssl", "haproxy", "node"]:
        if not shutil.which(program):
            not_tried(f"{program} is not installed")
    os.environ["TOOLCRIB_NETWORK"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--kill-child", "--fork", "--pid", "--mount-proc", sys.executable, *sys.argv])


def ip(*args):
    subprocess.run(["ip", *args], check=True)


class Switch:
    def __init__(self):
        ip("link", "set", "lo", "up")
        ip("link", "add", "switch", "type", "bridge")
        ip("address", "add", f"{NETWORK}.1/24", "dev", "switch")
        ip("link", "set", "switch", "up")
        self.machines = []

    def machine(self, clock=None):
        """Plugs in a machine; `clock` is the difference of its clock, as libfaketime has it."""
        machine = Remote(len(self.machines) + 10, clock)
        self.machines.append(machine)
        return machine


class Remote:
    def __init__(self, number, clock):
        self.address, self.port = f"{NETWORK}.{number}", f"port{number}"
        self.env = {}
        if clock:
            libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
            if not libraries:
                not_tried("libfaketime is not installed")
            self.env = {"LD_PRELOAD": libraries[0], "FAKETIME": clock, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        mine = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == mine:
            time.sleep(0.01)
        ip("link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        ip("link", "set", self.port, "master", "switch", "up")
        inside = ["nsenter", "--target", str(self.holder.pid), "--net", "ip"]
        for args in [["link", "set", "lo", "up"], ["address", "add", f"{self.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]]:
            subprocess.run([*inside, *args], check=True)

    def command(self, args):
        settings = [f"{name}={value}" for name, value in self.env.items()]
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--", *(["env", *settings] if settings else []), *args]

    def unplug(self):
        ip("link", "set", self.port, "down")

    def plug_in(self):
        ip("link", "set", self.port, "up")


class Certificates:
    """An authority, and one certificate for all machines."""

    def __init__(self, folder, addresses):
        folder.mkdir()
        self.authority, self.certificate, self.key = folder / "ca.pem", folder / "machines.pem", folder / "machines.key"
        names = ",".join(f"IP:{address}" for address in addresses)
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
        self.openssl("req", "-x509", *curve, "-keyout", f"{folder}/ca.key", "-out", self.authority, "-subj", "/CN=authority of the check")
        self.openssl("req", *curve[:-2], "-keyout", self.key, "-out", f"{folder}/request", "-subj", "/CN=machines of the check")
        (folder / "names").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
        self.openssl("x509", "-req", "-in", f"{folder}/request", "-CA", self.authority, "-CAkey", f"{folder}/ca.key", "-days", "30",
                     "-extfile", f"{folder}/names", "-out", self.certificate)
        # PostgreSQL reads only a key of its own user.
        self.of_postgres = folder / "postgres.key"
        shutil.copy(self.key, self.of_postgres)
        shutil.chown(self.of_postgres, "postgres")
        self.of_postgres.chmod(0o600)

    @staticmethod
    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


class Provider:
    """The identity provider `oidc-provider`, installed by npm."""

    def __init__(self, folder, machine, certificates, audience, people):
        folder.mkdir()
        modules = pathlib.Path(os.environ.get("OIDC_PROVIDER", folder))
        if not (modules / "node_modules/oidc-provider").exists():
            not_tried("install `oidc-provider` with npm, and name its folder in OIDC_PROVIDER")
        shutil.copy(pathlib.Path(__file__).with_name("provider.mjs"), folder)
        os.symlink(modules / "node_modules", folder / "node_modules")
        self.url = f"https://{machine.address}:9911"
        env = {**os.environ, "ISSUER": self.url, "ADDRESS": machine.address, "AUDIENCE": audience, "PEOPLE": str(people),
               "CERTIFICATE": str(certificates.certificate), "KEY": str(certificates.key)}
        log = open(folder / "log", "ab")
        self.process = subprocess.Popen(machine.command(["node", "provider.mjs"]), cwd=folder, env=env, stdout=log, stderr=log)
        self.audience = audience

    def token(self, number, context):
        """Signs a person in, as soon as the provider listens."""
        form = {"grant_type": "client_credentials", "client_id": f"person-{number}", "client_secret": "a secret of the check",
                "resource": self.audience, "scope": "tools:call"}
        request = urllib.request.Request(f"{self.url}/token", urllib.parse.urlencode(form).encode())
        until = time.time() + 60
        while True:
            try:
                return json.load(urllib.request.urlopen(request, context=context, timeout=10))["access_token"]
            except urllib.error.HTTPError as error:
                sys.exit(f"the identity provider: {error.read().decode()}")
            except OSError:
                if time.time() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Storage:
    """The S3-compatible server of `moto`, installed by pip, with a bucket."""

    def __init__(self, folder, machine, certificates, context):
        program = os.environ.get("MOTO_SERVER", "moto_server")
        if not shutil.which(program):
            not_tried("install `moto[server]` with pip, and name its `moto_server` in MOTO_SERVER")
        folder.mkdir()
        self.url = f"https://{machine.address}:9444"
        args = [program, "-H", machine.address, "-p", "9444", "-c", str(certificates.certificate), "-k", str(certificates.key)]
        log = open(folder / "log", "ab")
        self.process = subprocess.Popen(machine.command(args), cwd=folder, stdout=log, stderr=log)
        until = time.time() + 60
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(f"{self.url}/logs", method="PUT"), context=context, timeout=10)
                return
            except OSError:
                if time.time() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def bucket(self, prefix):
        return f"s3://logs/{prefix}?endpoint={self.url}"

    def stop(self):
        self.process.kill()
        self.process.wait()


class Nats:
    """A server of NATS, over TLS."""

    def __init__(self, folder, machine, certificates):
        if not shutil.which("nats-server"):
            not_tried("nats-server is not installed")
        folder.mkdir()
        self.folder, self.machine, self.certificates, self.url = folder, machine, certificates, f"tls://{machine.address}:4222"
        self.start()

    def start(self):
        log = open(self.folder / "log", "ab")
        pair = ["--tls", f"--tlscert={self.certificates.certificate}", f"--tlskey={self.certificates.key}"]
        args = ["nats-server", "-a", self.machine.address, "-p", "4222", *pair]
        self.process = subprocess.Popen(self.machine.command(args), stdout=log, stderr=log)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Balancer:
    """HAProxy passes on connections, and asks each server for its readiness."""

    def __init__(self, folder, machine, servers):
        folder.mkdir()
        self.folder, self.machine, self.process = folder, machine, None
        self.address, self.port = machine.address, 443
        self.start(servers)

    def start(self, servers):
        lines = "".join(f"  server s{n} {server} check check-ssl verify none inter 500ms fall 2 rise 1\n" for n, server in enumerate(servers))
        (self.folder / "haproxy.cfg").write_text(
            "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1h\n  timeout server 1h\n  retries 3\n  option redispatch\n"
            f"listen toolcrib\n  bind {self.address}:{self.port}\n  balance roundrobin\n  option httpchk GET /healthz\n{lines}")
        log = open(self.folder / "log", "ab")
        command = self.machine.command(["haproxy", "-q", "-db", "-f", f"{self.folder}/haproxy.cfg"])
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.time() + 30
        while True:
            try:
                return socket.create_connection((self.address, self.port), timeout=5).close()
            except OSError:
                if time.time() > until:
                    raise
                time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
