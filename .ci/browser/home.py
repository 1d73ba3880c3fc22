"""A home with its own state, in which the built program runs: commands, scripted runs, an MCP client, and the console."""

import contextlib
import json
import os
import queue
import re
import subprocess
import threading
import time
from pathlib import Path

# Time for anything that has to happen, on a busy machine.
PATIENCE = 30
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}}


class Home:
    def __init__(self, folder, program, crib, cache):
        self.folder, self.program, self.crib = Path(folder), str(program), str(crib)
        self.state = self.folder / "home/.local/state/toolcrib"
        (self.folder / "home").mkdir(parents=True)
        self.environment = {
            "HOME": str(self.folder / "home"),
            "PATH": os.environ["PATH"],
            # Compiled tools stay for the next start of this check: the cache is sealed.
            "TOOLCRIB_CACHE_DIR": str(cache),
        }

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return path

    def run(self, *arguments, folder=None):
        """Runs the program to its end, whatever its exit code."""
        return subprocess.run(
            [self.program, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            cwd=folder or self.folder,
        )

    def must(self, *arguments, folder=None):
        """Runs the program, which has to succeed."""
        ended = self.run(*arguments, folder=folder)
        if ended.returncode != 0:
            raise RuntimeError(f"{arguments}: exit code {ended.returncode}\n{ended.stdout[-1000:]}\n{ended.stderr[-2000:]}")
        return ended.stdout

    def script(self, name, prompt, *turns, answer="done"):
        """Writes a scripted model: each turn is a text and the calls after it, as pairs of a tool and its arguments."""
        calls = [
            {"content": text, "tool_calls": [{"name": tool, "arguments": arguments} for tool, arguments in made]}
            for text, *made in turns
        ]
        return str(self.write(name, {"prompt": prompt, "turns": [*calls, {"content": answer}]}))

    def approvals(self):
        return json.loads(self.must("approvals", "pending", "--json"))

    def logs(self):
        return sorted((self.state / "audit").glob("*.log"))


class Running:
    """A program that runs, with the lines of its outputs as they come."""

    def __init__(self, home, *arguments, is_talked_to=False, folder=None):
        self.lines = queue.Queue()
        self.seen = []
        self.process = subprocess.Popen(
            [home.program, *map(str, arguments)],
            env=home.environment,
            cwd=folder or home.folder,
            text=True,
            stdin=subprocess.PIPE if is_talked_to else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def until(self, wanted):
        """Returns the next line that matches a pattern, as a match."""
        end = time.monotonic() + PATIENCE
        while (left := end - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                line = self.lines.get(timeout=left)
                if line is None:
                    break
                self.seen.append(line)
                if found := re.search(wanted, line):
                    return found
        raise TimeoutError(f"no line matches {wanted}: " + "".join(self.seen[-20:])[-4000:])

    def end(self):
        """Waits for the end; returns the exit code."""
        return self.process.wait(PATIENCE)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)

    def processor_seconds(self):
        """Processor time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Memory of the process now, in bytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) << 10


class Server(Running):
    """`toolcrib mcp` with a client that cannot ask its user."""

    def __init__(self, home, *flags, client="editor"):
        super().__init__(home, "mcp", *flags, is_talked_to=True)
        self.ids = 0
        self.ask("initialize", HELLO | {"clientInfo": {"name": client, "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method, parameters):
        self.ids += 1
        self.send({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": parameters})
        return self.ids

    def answer(self, id):
        return json.loads(self.until(rf'^\{{"jsonrpc":"2.0","id":{id}[,}}]').string)

    def ask(self, method, parameters):
        return self.answer(self.request(method, parameters))

    def call(self, tool, arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def calls(self, tool, all_arguments):
        """Makes many calls, of which some hundred are under way."""
        ids = []
        for arguments in all_arguments:
            ids.append(self.request("tools/call", {"name": tool, "arguments": arguments}))
            if len(ids) == 200:
                self.drain(ids)
        self.drain(ids)

    def drain(self, ids):
        wanted = set(ids)
        ids.clear()
        while wanted:
            wanted.discard(int(self.until(r'^\{"jsonrpc":"2.0","id":(\d+)')[1]))


class Console(Running):
    """`toolcrib console` with its printed addresses."""

    def __init__(self, home, *flags):
        super().__init__(home, "console", *flags)
        self.addresses = [self.until(r"^(http://\S+)\n")[1]]
        if "--share-read" in flags:
            self.addresses.append(self.until(r"^(http://\S+)\n")[1])
        self.origin, self.port = re.match(r"(http://[\d.]+:(\d+))/", self.addresses[0]).groups()

    @property
    def address(self):
        return self.addresses[0]
