"""Cases of `.ci/windows`: a program for Windows, run under Wine, is granted, denied, asked, interrupted and audited.

    trial.py WINE PROGRAM CRIB WORK

Each case prints a line, and the last line counts them. The exit code is 1 if a case differs. Each start of Wine costs about a
second, so that the hostile names of `names.json` are the calls of one run.
"""

import json
import os
import queue
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tty
from pathlib import Path

WINE, PROGRAM, CRIB, WORK = sys.argv[1:5]
HERE = Path(__file__).resolve().parent
WORK = Path(WORK) / "trial"
# Contents of files that no answer may show.
CANARIES = ["OUTSIDE-CANARY", "RULED-CANARY", "[fonts]"]
# Prefix of paths for the system, as it is and in JSON. The calls and records of `names.json` have it in arguments.
PREFIX = re.compile(r"\\\\\?\\|\\\\\\\\\?\\\\")
# Time for one start of the program, on a busy machine.
PATIENCE = 90

cases, failed = 0, 0
# Outputs with a path that has the prefix for the system, which people should not see.
prefixed = []


def case(name, is_right, detail=""):
    """Counts and prints a case; the detail of a wrong one too."""
    global cases, failed
    cases += 1
    failed += not is_right
    print(f"{'ok  ' if is_right else 'FAIL'} {name}", flush=True)
    if not is_right:
        print("     " + str(detail).strip()[-1500:].replace("\n", "\n     "), flush=True)


def windows_path(path):
    """Returns a path as programs under Wine name it."""
    return "Z:" + str(path).replace("/", "\\")


ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("TOOLCRIB_", "OAI_", "OPENAI_"))},
    "TOOLCRIB_CACHE_DIR": windows_path(WORK / "state/cache"),
    # Names of variables have no case on Windows.
    "Toolcrib_Audit_Dir": windows_path(WORK / "state/audit"),
    "TOOLCRIB_RESULTS_DIR": windows_path(WORK / "state/results"),
    "TOOLCRIB_APPROVALS": windows_path(WORK / "state/approvals.json"),
    "TOOLCRIB_PENDING": windows_path(WORK / "state/pending.json"),
    "TOOLCRIB_SECRETS_STORE": "file",
    "TOOLCRIB_SECRETS_FILE": windows_path(WORK / "state/secrets/secrets.enc"),
}
TOOLS = ["--tools", windows_path(CRIB)]


def command(*arguments):
    return [WINE, PROGRAM, *map(str, arguments)]


class Ran:
    """Exit code and outputs of a program that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def run(*arguments, given=b"", folder=None):
    ended = subprocess.run(
        command(*arguments), input=given, capture_output=True, timeout=PATIENCE, env=ENVIRONMENT, cwd=folder or WORK
    )
    ran = Ran(ended.returncode, *(text.decode("utf-8", "replace") for text in (ended.stdout, ended.stderr)))
    if PREFIX.search(ran.out + ran.err) and not {"names.json", "show"} & set(arguments):
        prefixed.append(f"{arguments}: {ran}")
    return ran


def call(tool, arguments, *flags):
    """Calls a tool; returns its outcome, and the run."""
    ran = run("call", tool, json.dumps(arguments), "--json", *TOOLS, *flags)
    try:
        return json.loads(ran.out)["receipt"]["outcome"], ran
    except (ValueError, KeyError):
        return None, ran


def script(name, *turns):
    """Writes a scripted model: each turn is a list of calls, as pairs of a tool and its arguments."""
    calls = [{"tool_calls": [{"name": tool, "arguments": arguments} for tool, arguments in turn]} for turn in turns]
    (WORK / name).write_text(json.dumps({"prompt": "go", "turns": [*calls, {"content": "done"}]}))
    return name


def results(text):
    """Returns the results of the calls of a run with `--json`, in the order of the calls."""
    events = [json.loads(line) for line in text.splitlines()]
    by_call = {event["id"]: event for event in events if event["type"] == "tool_result"}
    return [by_call.get(event["id"]) for event in events if event["type"] == "tool_call"]


class Lines:
    """A program that is still running, with its output as JSON, a line at a time. It is talked to, or has no input."""

    def __init__(self, *arguments, is_talked_to=True):
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        given = pipe if is_talked_to else none
        self.process = subprocess.Popen(
            command(*arguments), stdin=given, stdout=pipe, stderr=none, env=ENVIRONMENT, cwd=WORK
        )
        self.seen, self.lines = [], queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def until(self, wanted):
        """Returns the next line that `wanted` accepts; `{}` if none comes."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                line = json.loads(self.lines.get(timeout=0.2))
            except queue.Empty:
                continue
            except ValueError:
                continue
            self.seen.append(line)
            if wanted(line):
                return line
        return {}

    def send(self, message):
        self.process.stdin.write((json.dumps(message) + "\n").encode())
        self.process.stdin.flush()

    def end(self):
        if self.process.stdin:
            self.process.stdin.close()
        return self.process.wait(PATIENCE)


def on_console(arguments, steps, is_raw=True, patience=PATIENCE):
    """Runs the program on a terminal. Each step waits for a text and types another. Returns exit code and screen."""
    ours, theirs = os.openpty()
    if is_raw:
        tty.setraw(theirs)
    process = subprocess.Popen(
        command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT, cwd=WORK, start_new_session=True
    )
    os.close(theirs)
    screen, steps, end = "", list(steps), time.monotonic() + patience
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                part = os.read(ours, 65536)
            except OSError:
                part = b""
            if not part:
                break
            screen += part.decode("utf-8", "replace")
        elif process.poll() is not None:
            break
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen)
        if steps and steps[0][0] in plain:
            act = steps.pop(0)[1]
            act(process) if callable(act) else os.write(ours, act)
    if process.poll() is None:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
    os.close(ours)
    return process.wait(), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen)


def records():
    files = sorted((WORK / "state/audit").glob("*.log"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def grants():
    outcome, ran = call("fs_read_file", {"path": "a.txt"})
    case("without a grant nothing is read, and the flag is named", ran.code == 1 and "--allow-read" in ran.err, ran)
    outcome, ran = call("fs_read_file", {"path": "a.txt"}, "--allow-read=granted")
    case("a granted folder is read", (outcome, ran.code) == ("ok", 0) and "GRANTED" in ran.out, ran)
    outcome, ran = call("fs_write_file", {"path": "b.txt", "content": "x"}, "--allow-read=granted")
    case("a folder that is granted for reading is not written", outcome == "denied" and not (WORK / "granted/b.txt").exists(), ran)
    outcome, ran = call("fs_write_file", {"path": "b.txt", "content": "x\n"}, "--allow-write=granted")
    case("a folder that is granted for writing is written", outcome == "ok" and (WORK / "granted/b.txt").read_bytes() == b"x\n", ran)
    outcome, ran = call("fs_read_file", {"path": "a.txt"}, "--allow-write=granted", "--deny-read=granted")
    case("a denied folder is not read", outcome != "ok" and "GRANTED" not in ran.out, ran)
    outcome, ran = call("fs_write_file", {"path": "c.txt", "content": "x"}, "--allow-write=granted", "--deny-write=granted")
    case("a denied folder is not written", outcome != "ok" and not (WORK / "granted/c.txt").exists(), ran)


def demo():
    shutil.copytree(Path(CRIB) / "demo", WORK / "demo")
    played = windows_path(HERE.parent.parent / "cli/demo/script.json")
    ran = run("run", "--script", played, *TOOLS, "--allow-write=demo/desk")
    plan = WORK / "demo/desk/plan.md"
    case("the demo of the README leaves its plan", ran.code == 0 and plan.exists() and "Plan for Friday" in plan.read_text(), ran)
    case("the demo of the README is refused at the safe", "denied" in ran.err and "leads out of the granted folder" in ran.err, ran)


def names():
    long = "/".join(["l" * 60] * 5)
    (WORK / "granted" / long).mkdir(parents=True)
    (WORK / "granted" / long / "z.txt").write_text("GRANTED\n")
    table = json.loads((HERE / "names.json").read_text())["names"]
    outside = windows_path(WORK / "outside")
    asked = [(tool, path.replace("{outside}", outside).replace("{long}", long)) for tool, path, *_ in table]
    extra = {"fs_write_file": {"content": "x"}}
    calls = [(tool, {"path": path, **extra.get(tool, {})}) for tool, path in asked]
    turns = [calls[at : at + 10] for at in range(0, len(calls), 10)]
    flags = ["--json", "--max-steps=20", *TOOLS, "--allow-write=granted", "--deny-tool=fs_read_file(path=sub/*)"]
    ran = run("run", "--script", script("names.json", *turns), *flags)
    found = results(ran.out)
    found += [None] * (len(table) - len(found))
    for (tool, path, wanted, *holds), result in zip(table, found):
        text = json.dumps(result)
        outcome = (result or {}).get("receipt", {}).get("outcome")
        shows = [canary for canary in CANARIES if canary in text]
        allowed = {"ok": ["ok"], "refused": ["denied", "failed"], "link": ["denied", "failed", "ok"]}[wanted]
        is_right = outcome in allowed
        is_right = is_right and not shows and all(part in text for part in holds)
        end = f"link, {outcome}" if wanted == "link" else wanted
        case(f"{tool} {json.dumps(path)}: {end}", is_right, text if result else ran)
    created = sorted(path.name for path in (WORK / "outside").iterdir())
    case("nothing was created or removed outside", created == ["secret.txt"], created)
    inside = sorted(path.name for path in (WORK / "granted").iterdir())
    case("nothing was created inside under another name", ".git" not in inside and "trailing" not in inside, inside)


def audit():
    ran = run("audit", "verify")
    case("the audit log verifies", ran.code == 0 and f" {len(records())} records" in ran.out, ran)
    ran = run("audit", "show", "--json")
    lines = ran.out.splitlines()
    case("the audit log is shown", ran.code == 0 and len(lines) == len(records()), ran.err)
    before = len(records())
    calls = [subprocess.Popen(command("call", "calculate", json.dumps({"expression": f"{n}+1"}), *TOOLS), env=ENVIRONMENT,
                              cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(8)]
    checks = [run("audit", "verify") for _ in range(2)]
    ends = [call.communicate(timeout=PATIENCE) and call.returncode for call in calls]
    case("eight processes write one log", ends == [0] * 8 and len(records()) == before + 8, (ends, before, len(records())))
    case("the log verifies beside writers", [check.code for check in checks] == [0, 0], "\n".join(map(str, checks)))
    ran = run("audit", "verify")
    case("the log of eight processes is one chain", ran.code == 0, ran)
    newest = max((WORK / "state/audit").glob("*.log"))
    whole = newest.read_bytes()
    newest.write_bytes(whole.replace(b"calculate", b"calculatf", 1))
    ran = run("audit", "verify")
    newest.write_bytes(whole)
    case("a changed record is found", ran.code == 1, ran)


def moved_log():
    """A server whose log is moved away starts it again."""
    server = Lines("mcp", *TOOLS)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "trial", "version": "1"}}
    server.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    server.until(lambda line: line.get("id") == 1)
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def calculate(id):
        params = {"name": "calculate", "arguments": {"expression": "6*7"}}
        server.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        return "42" in json.dumps(server.until(lambda line: line.get("id") == id))

    first = calculate(2)
    folder, away = WORK / "state/audit", WORK / "state/away"
    folder.rename(away)
    time.sleep(1.5)
    second = calculate(3)
    code = server.end()
    case("a server calls tools and ends with its input", first and second and code == 0, (first, second, code, server.seen))
    case("a log that was moved away is started again", len(records()) == 1, list(folder.glob("*")))
    shutil.rmtree(folder)
    away.rename(folder)


def secrets():
    ran = run("secret", "set", "trial", given=b"hush-hush\r\n")
    stored = (WORK / "state/secrets/secrets.enc").read_bytes()
    case("a secret is stored from a pipe, not as plain text", ran.code == 0 and b"hush-hush" not in stored, ran)
    code, screen = on_console(["secret", "set", "typed"], [("not shown", "geheimni\u00df\r".encode())])
    case("a typed secret is not shown", code == 0 and "geheimni" not in screen and "stored" in screen, (code, screen))
    ran = run("secret", "list")
    case("secrets are listed", ran.code == 0 and "trial" in ran.out and "typed" in ran.out and "hush" not in ran.out, ran)
    ran = run("secret", "remove", "trial", "typed")
    case("secrets are removed", ran.code == 0 and "trial" not in run("secret", "list").out, ran)


def write(path):
    return ("fs_write_file", {"path": path, "content": "x"})


def approvals():
    flags = [*TOOLS, "--allow-write=granted", "--ask-tool=fs_write_file"]
    ran = run("run", "--script", script("ask.json", [write("asked.txt")]), "--json", *flags)
    reason = results(ran.out)[0]["receipt"]["decision"]["behavior"] if results(ran.out) else None
    case("without a console nobody approves", reason == "deny" and not (WORK / "granted/asked.txt").exists(), ran)
    program = Lines("run", "--script", script("ask.json", [write("yes.txt"), write("no.txt")]), "--json", "--answers", *flags)
    for word, reason in [("once", {}), ("no", {"reason": "not this one"})]:
        question = program.until(lambda line: line["type"] == "permission_asked")
        program.send({"type": "permission_answer", "id": question.get("id"), "answer": word, **reason})
    program.until(lambda line: line["type"] == "end")
    code = program.end()
    done = [(WORK / "granted" / name).exists() for name in ("yes.txt", "no.txt")]
    case("a program approves one call and refuses another", (code, done) == (0, [True, False]), program.seen)
    case("the reason of a refusal reaches the model", "not this one" in json.dumps(program.seen), program.seen)
    waiting = Lines("run", "--script", script("wait.json", [write("waited.txt")]), "--json", "--wait-approval", "60s", *flags,
                    is_talked_to=False)
    pending, end = [], time.monotonic() + PATIENCE
    while not pending and time.monotonic() < end:
        time.sleep(0.5)
        ran = run("approvals", "pending", "--json")
        pending = json.loads(ran.out or "[]")
    allowed = run("approvals", "allow", pending[0]["id"]) if pending else ran
    waiting.until(lambda line: line["type"] == "end")
    code = waiting.end()
    case("a call that waits is allowed by another process", code == 0 and (WORK / "granted/waited.txt").exists(), allowed)
    code, screen = on_console(["run", "--script", script("ask.json", [write("typed.txt")]), *flags], [("or [N]o?", b"y\r")])
    case("a person approves on the console", code == 0 and (WORK / "granted/typed.txt").exists(), (code, screen))
    # The first question starts the console's input: what is typed from then on is there, and dropped before the second.
    turns = script("ask.json", [write("first.txt")], [write("second.txt")])
    steps = [("or [N]o?", b"n no\ry\ry\r"), ("first.txt", lambda _: time.sleep(3))]
    code, screen = on_console(["run", "--script", turns, *flags], steps, patience=20)
    done = [(WORK / "granted" / name).exists() for name in ("first.txt", "second.txt")]
    case("what was typed ahead approves nothing", done == [False, False], (code, done, screen))


def stored_results():
    outcome, ran = call("fs_read_file", {"path": "a.txt"}, "--allow-read=granted", "--max-inline=40")
    found = re.search(r"res_[0-9a-f]{32}", ran.out)
    shown = run("result", "show", found.group()) if found else ran
    case("a large result is stored and shown", bool(found) and shown.code == 0 and "GRANTED" in shown.out, shown)
    ran = run("result", "list")
    case("results are listed", ran.code == 0 and bool(found) and found.group() in ran.out, ran)
    ran = run("result", "remove", "--all")
    case("results are removed", ran.code == 0 and "res_" not in run("result", "list").out, ran)


def projects():
    component = windows_path(Path(CRIB) / "tools/bin/calculate.wasm")
    (WORK / "tests.json").write_text(json.dumps({"cases": [
        {"name": "adds", "arguments": {"expression": "1 + 2"}, "expect": {"contains": "3"}},
        {"name": "needs an expression", "arguments": {}, "expect": {"error": "expression"}},
    ]}))
    ran = run("test", component, "--cases", "tests.json")
    case("`test` runs the cases of a component", ran.code == 0 and "2 cases, 0 failed" in ran.out, ran)
    (WORK / "project").mkdir()
    ran = run("new", "tool", "count", "--markdown", folder=WORK / "project")
    case("`new` writes a tool in Markdown", ran.code == 0 and (WORK / "project/.harness/tools/count.md").exists(), ran)
    ran = run("validate", ".harness", folder=WORK / "project")
    case("the new tool is valid", ran.code == 0, ran)
    ran = run("new", "tool", "greet", folder=WORK / "project")
    case("`new` writes a package", ran.code == 0 and (WORK / "project/greet/src/lib.rs").exists(), ran)
    ran = run("build", "greet", folder=WORK / "project")
    case("`build` without Rust says what to install", ran.code == 1 and "rustup.rs" in ran.err, ran)
    ran = run("init", "own", folder=WORK / "project")
    case("`init` creates a project", ran.code == 0 and (WORK / "project/own/tools.json").exists(), ran)
    ran = run("call", "calculate", '{"expression":"6*7"}', folder=WORK / "project/own")
    case("the tools of the project answer", ran.code == 0 and "42" in ran.out, ran)
    ran = run("doctor", *TOOLS)
    case("`doctor` names what is missing on Windows", "warn system" in ran.out and "of its user" in ran.out, ran)
    ran = run("mcp", "config", "claude-code")
    case("`mcp config` names the program", ran.code == 0 and "toolcrib" in ran.out, ran)


def compilation():
    empty = ["--cache-dir", windows_path(WORK / "state/empty-cache")]
    outcome, ran = call("json_query", {"filter": ".", "input": 1}, "--compile-timeout=1ms", *empty)
    case("a compilation that takes too long is ended", outcome == "bad-component" and "timed out" in ran.out, ran)


def interrupt():
    """A request that nobody answers keeps a call running. The first Ctrl-C, a signal for Wine, lets it finish; not the second."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE)
    place = f"http://127.0.0.1:{listener.getsockname()[1]}"
    turns = script("page.json", [("fetch_page", {"url": place + "/"})])
    before = len(records())
    program = Lines("run", "--script", turns, "--json", *TOOLS, f"--allow-net={place}", is_talked_to=False)
    connection = listener.accept()
    for _ in range(2):
        time.sleep(1)
        os.kill(program.process.pid, signal.SIGINT)
    code = program.process.wait(PATIENCE)
    connection[0].close()
    listener.close()
    new = records()[before:]
    case("Ctrl-C ends a run with its exit code", code == 130, (code, program.seen))
    case("the interrupted call is recorded", [record["outcome"] for record in new] == ["cancelled"], new)


def main():
    began = time.monotonic()
    for folder in ["granted/sub", "granted/other", "outside", "linked", "state"]:
        (WORK / folder).mkdir(parents=True)
    for path, text in [("granted/a.txt", "GRANTED"), ("granted/other/y.txt", "GRANTED"), ("granted/sub/x.txt", CANARIES[1]),
                       ("granted/name with blanks and \u00fc.txt", "GRANTED"), ("outside/secret.txt", CANARIES[0]), ("linked/secret.txt", "LINKED")]:
        (WORK / path).write_text(text + "\n" + " " * 60)
    (WORK / "granted/link-inside.txt").symlink_to("a.txt")
    (WORK / "granted/link-outside.txt").symlink_to("../linked/secret.txt")
    (WORK / "granted/folder-outside").symlink_to("../linked")
    for group in [grants, demo, names, audit, moved_log, secrets, approvals, stored_results, projects, compilation, interrupt]:
        if len(sys.argv) <= 5 or group.__name__ in sys.argv[5:]:
            try:
                group()
            except Exception as error:  # A case that cannot run is a wrong case.
                case(f"{group.__name__} runs to its end", False, repr(error))
    case("no path was shown with a prefix for the system", not prefixed, "\n".join(prefixed))
    print(f"{cases} cases, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


sys.exit(main())
