"""Servers over one PostgreSQL, with a tool that creates a file for each call, for checks that count its effects.

A check exits with 3 where PostgreSQL or the target of the tool is missing.
"""

import glob, http.client, json, os, shutil, signal, socket, subprocess, sys, time

TOOL = """
use std::fs::OpenOptions;
use std::io::Read;
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    if text.contains("slow") {
        std::thread::sleep(std::time::Duration::from_secs(5));
    }
    if text.contains("wait") {
        std::thread::sleep(std::time::Duration::from_millis(400));
    }
    let id: String = text.chars().filter(char::is_ascii_digit).collect();
    // A second effect gets another name.
    for number in 0.. {
        let path = format!("{id}-{number}");
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            created => { created.unwrap(); break }
        }
    }
    println!("{{\\"made\\": {id}}}");
}
"""
# A tool that only reads.
LOOK = """
use std::io::Read;
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let id: String = text.chars().filter(char::is_ascii_digit).collect();
    println!("{{\\"seen\\": {id}}}");
}
"""
PASSWORD = "a password of the check"


def not_tried(why):
    print(f"not tried: {why}")
    sys.exit(3)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Machine:
    """This machine, at its loopback address."""

    address = "127.0.0.1"

    def command(self, args):
        """Returns the command that starts a program here."""
        return args


class Postgres:
    def __init__(self, folder, machine=Machine(), settings=()):
        bins = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not bins:
            not_tried("PostgreSQL is not installed")
        self.bin, self.folder, self.port, self.process = bins[-1], folder, free_port(), None
        self.machine, self.settings = machine, [f"-c{setting}" for setting in settings]
        self.user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.getuid() == 0 else []
        folder.mkdir()
        (folder / "password").write_text(PASSWORD)
        if self.user:
            shutil.chown(folder, "postgres")
        args = ["-D", f"{folder}/data", "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={folder}/password", "-E", "UTF8"]
        subprocess.run([*self.user, f"{self.bin}/initdb", *args, "--locale=C"], check=True, cwd="/", stdout=subprocess.DEVNULL)
        with open(f"{folder}/data/pg_hba.conf", "a") as rules:
            rules.write(f"host all all {machine.address}/24 scram-sha-256\n")
        self.start()

    def start(self):
        log = open(f"{self.folder}/../postgres.log", "ab")
        at = ["-p", str(self.port), "-h", self.machine.address]
        args = [*self.user, f"{self.bin}/postgres", "-D", f"{self.folder}/data", *at, "-k", "", *self.settings]
        self.process = subprocess.Popen(self.machine.command(args), cwd="/", stdout=log, stderr=log)
        while subprocess.run(self.machine.command([f"{self.bin}/pg_isready", "-q", *at])).returncode:
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def query(self, text):
        env = {**os.environ, "PGPASSWORD": PASSWORD}
        args = [f"{self.bin}/psql", "-h", self.machine.address, "-p", str(self.port), "-U", "postgres", "-XAtqc", text, "postgres"]
        return subprocess.run(self.machine.command(args), env=env, cwd="/", capture_output=True, text=True).stdout.strip()


class Crib:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        for name in ["home", "work", "tools/bin"]:
            (folder / name).mkdir(parents=True)
        for name, source in [("effect", TOOL), ("look", LOOK)]:
            (folder / f"{name}.rs").write_text(source)
            built = subprocess.run(["rustc", "--target", "wasm32-wasip2", "-O", "-o", f"{folder}/tools/bin/{name}.wasm", f"{folder}/{name}.rs"])
            if built.returncode:
                not_tried("rustc has no target wasm32-wasip2")
        tool = {"name": "effect", "description": "Create a file.", "command": ["./tools/bin/effect"],
                "capabilities": {"files": "write"}, "interface": {"is_destructive": False}}
        look = {"name": "look", "description": "Look.", "command": ["./tools/bin/look"],
                "interface": {"is_read_only": True, "is_concurrency_safe": True}}
        (folder / "tools.json").write_text(json.dumps({"tools": [tool, look]}))
        self.env = {"HOME": f"{folder}/home", "PATH": os.environ["PATH"], "STORE_PASSWORD": PASSWORD}
        shown = self.run("trust", ".")
        self.run("trust", ".", next(word for word in (shown.stdout + shown.stderr).split() if word.startswith("--trust=")))

    def run(self, *args):
        ran = subprocess.run([self.program, *args], cwd=self.folder, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return ran

    def server(self, port, *settings):
        args = [self.program, "mcp", f"--http=127.0.0.1:{port}", "--stateless", "--allow-write=work"]
        args += [f"--set=server.{setting}" for setting in settings]
        log = open(self.folder / f"server-{port}.log", "ab")
        process = subprocess.Popen(args, cwd=self.folder, env=self.env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/readyz")
                connection.getresponse().read()
                return process
            except OSError:
                if process.poll() is not None:
                    sys.exit(open(log.name).read())
                time.sleep(0.05)


def call(connection, token, id, key=None, tool="effect", **more):
    params = {"name": tool, "arguments": {"id": id, **more}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Mcp-Method": "tools/call",
               "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Name": tool}
    if key:
        headers["Idempotency-Key"] = key
    connection.request("POST", "/mcp", body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        return answer.status, text
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")] if "data:" in text[:10] or "\ndata:" in text else [text]
    return 200, json.loads([line for line in lines if line][-1])


def outcome(status, answer):
    if status != 200:
        return str(status)
    if "error" in answer:
        return "refused"
    result = answer["result"]
    text = result["content"][0]["text"]
    if result.get("isError"):
        return "running" if "still runs" in text else "unknown" if "effect is unknown" in text else "failed: " + text
    return "repeated" if result.get("_meta", {}).get("toolcrib/repeated") else "made"
