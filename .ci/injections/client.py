"""An MCP client whose user can be asked. Each conversation is a process of `toolcrib mcp`, because a label lasts that long."""

import json
import subprocess
import threading

# Time for a whole conversation, on a busy machine.
PATIENCE = 60
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {"form": {}}},
    "clientInfo": {"name": "injections", "version": "1"},
}
YES = {"action": "accept", "content": {"allow": True}}
NO = {"action": "decline"}


class Answer:
    """Answer to a call, with the questions that came before it."""

    def __init__(self, result, questions):
        self.is_error, self.text, self.questions = result["isError"], result["content"][0]["text"], questions
        self.outcome = result["_meta"]["toolcrib/receipt"]["outcome"]
        # A rule closed a way out while the call ran. A new call asks.
        self.asks_for_repetition = self.is_error and "which a new call can ask for" in self.text

    @property
    def is_denied(self):
        return self.is_error and self.outcome == "denied"


class Client:
    def __init__(self, world, setting):
        self.errors = world.folder / "errors.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [world.program, "mcp", "--tools=tools", f"--config={setting}.toml"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=world.environment,
                cwd=world.folder,
            )
        self.timer = threading.Timer(PATIENCE, self.process.kill)
        self.timer.daemon = True
        self.timer.start()
        self.ids = 0
        self.ask("initialize", HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.timer.cancel()

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, parameters, decide=None):
        """Sends a request. Each question before its answer is decided by its text."""
        self.ids += 1
        self.send({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": parameters})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": decide(message["params"]["message"])})
            elif message.get("id") == self.ids:
                return message["result"]
        raise RuntimeError(f"exit code {self.process.wait()}: {self.errors.read_text()[-2000:]}")

    def call(self, tool, arguments, answer):
        questions = []

        def decide(question):
            questions.append(question)
            return answer

        return Answer(self.ask("tools/call", {"name": tool, "arguments": arguments}, decide), questions)
