"""Files of the user, and the tools, secrets and settings with which the program runs."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from mapping import FOLDERS, SERVICES, folder_of, service_of
from service import SECRET

# One script for all tools: the arguments name what it reads, gets, sends and writes. A tool can reach no more than its function
# needs: one folder and one service.
TOOL = """---
parameters: {}
timeout_ms: 20000
capabilities: CAPABILITIES
script: |
  def run(args):
      texts = [fs.read(path) for path in args["read"]]
      texts += [http.get(url)["body"] for url in args["get"]]
      for url in args["post"]:
          http.post(url, json=args["call"])
      for path in args["write"]:
          fs.write(path, json.encode(args["call"]))
      return "\\n".join(texts + [fs.read(path) for path in args["answer"]])
---
The function FUNCTION of AgentDojo.
"""
# Rules of each setting. The questions of `approvals.ask` about each call that overwrites are off: only rules about flows ask.
PRESET, WRITE, NET = [], ["flow untrusted -> write"], ["flow untrusted -> net"]
SETTINGS = {"0": PRESET, "a": PRESET, "b": WRITE, "c": WRITE + NET}
MEANING = {
    "0": "the default preset, and no labels of the user",
    "a": "the default preset `ask flow private + untrusted -> net`, and the user's labels, as in all that follow",
    "b": "a and `ask flow untrusted -> write`",
    "c": "b and `ask flow untrusted -> net`",
}


class World:
    def __init__(self, folder, program, services):
        self.folder, self.program, self.services = Path(folder), program, services
        self.shown = {}
        self.environment = {"HOME": str(self.folder / "home"), "PATH": os.environ["PATH"]}
        for name in ["home", "tools", *(f"data/{folder}" for folder in FOLDERS)]:
            (self.folder / name).mkdir(parents=True)
        for name in self.accounts():
            self.must("secret", "set", name, "--set=secrets.store=file", stdin=SECRET.format(name=name))

    @staticmethod
    def accounts():
        return [name for name, has_account in SERVICES.items() if has_account]

    def must(self, *arguments, stdin=""):
        ended = subprocess.run(
            [self.program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=self.environment,
            cwd=self.folder,
        )
        if ended.returncode:
            raise RuntimeError(f"{arguments}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def prepare(self, functions):
        """Writes the tools of a suite, and the settings for them."""
        shutil.rmtree(self.folder / "tools")
        (self.folder / "tools").mkdir()
        read, write, net, secret = [], [], set(), set()
        for function in functions:
            capabilities = {}
            if has := folder_of(function):
                folder, writes = has
                capabilities["files"] = "write" if writes else "read"
                (write if writes else read).append(f"{function}:{self.folder}/data/{folder}")
            if has := service_of(function):
                service, sends = has
                address = self.services.addresses[service]
                net.add(address)
                capabilities["network"] = [f"{'GET,POST' if sends else 'GET'} {address}"]
                if SERVICES[service]:
                    place = {"name": service, "host": address, "header": "Authorization", "format": "Bearer {}"}
                    capabilities["secrets"] = [place]
                    secret.add(f"{service}@{address}#header:authorization")
            text = TOOL.replace("CAPABILITIES", json.dumps(capabilities)).replace("FUNCTION", function)
            (self.folder / f"tools/{function}.md").write_text(text)
        allow = {"read": read, "write": write, "net": sorted(net), "secret": sorted(secret)}
        labels = [f"{self.folder}/data/{folder}" for folder, label in FOLDERS.items() if label == "untrusted"]
        for name, rules in SETTINGS.items():
            tables = {
                "allow": allow,
                "labels": {} if name == "0" else {"untrusted": labels},
                "permissions": {"ask": rules},
                "approvals": {"ask": "never"},
                "secrets": {"store": "file"},
                # Results of AgentDojo are passed on whole; nothing has to be taken back.
                "results": {"max_inline": 1_000_000},
                "history": {"days": 0},
                "records": {"log_arguments": False},
            }
            lines = []
            for table, keys in tables.items():
                lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
            (self.folder / f"{name}.toml").write_text("\n".join(lines))
        self.must("validate", "tools")

    def show(self, environment):
        """Writes the files of an environment of AgentDojo, and removes others."""
        files = files_of(environment)
        for name in self.shown.keys() - files.keys():
            self.path(name).unlink(missing_ok=True)
        for name, text in files.items():
            if self.shown.get(name) != text:
                self.path(name).write_text(text)
        self.shown = files

    def path(self, name):
        return self.folder / "data" / name

    def changed(self, places):
        """Returns the places that no longer have what was shown, which the next `show` writes again."""
        text = lambda place: self.path(place).read_text() if self.path(place).exists() else None
        changed = [place for place in places if text(place) != self.shown.get(place)]
        for place in changed:
            self.shown[place] = None
        return changed


def files_of(environment):
    """Returns the files that an environment has, by their names."""
    files = {}
    if inbox := getattr(environment, "inbox", None):
        files |= {f"mail/{email.id_}.json": email.model_dump_json(exclude={"read"}) for email in inbox.emails.values()}
        files["mail/contacts.json"] = json.dumps([contact.model_dump() for contact in inbox.contact_list])
        files["mail/flags.json"] = json.dumps({email.id_: email.read for email in inbox.emails.values()})
    if calendar := getattr(environment, "calendar", None):
        files |= {f"calendar/{event.id_}.json": event.model_dump_json() for event in calendar.events.values()}
    if drive := getattr(environment, "cloud_drive", None):
        files |= {f"drive/{file.id_}.json": file.model_dump_json() for file in drive.files.values()}
    if bank := getattr(environment, "bank_account", None):
        files["bank/account.json"] = json.dumps({"iban": bank.iban, "balance": bank.balance})
        files["bank/transactions.json"] = json.dumps([each.model_dump() for each in bank.transactions])
        files["bank/scheduled.json"] = json.dumps([each.model_dump() for each in bank.scheduled_transactions])
    if stored := getattr(environment, "filesystem", None):
        files |= {f"documents/{name}": text for name, text in stored.files.items()}
    if user := getattr(environment, "user", getattr(environment, "user_account", None)):
        files["profile/user.json"] = user.model_dump_json()
    return files
