"""The ordinary home: the demo, calls with several outcomes, a permanent approval, and two calls that wait."""

import json
import shutil
from pathlib import Path

from home import Running, Server

ROOT = Path(__file__).resolve().parents[2]
COUNT = """---
parameters:
  rounds: {type: number, description: Rounds to count., required: true}
  step:
    type: object
    description: Size of a step.
    properties: {by: {type: number, default: 1}, unit: {type: string, enum: [one, dozen]}}
script: |
  def run(args):
      total = 0
      for one in range(int(args["rounds"])):
          total = (total + one) % 1000003
      return {"total": total}
---
Count for a while.
"""
# Takes the content of a file.
UPLOAD = {
    "name": "upload",
    "description": "Take a file.",
    "schema": {"type": "object", "properties": {"content": {"type": "string", "contentEncoding": "base64"}}},
}


def permanent(home, tools, tool, arguments):
    """Lets a client of a server get a permanent approval."""
    server = Server(home, *tools, f"--ask-tool={tool}")
    server.call(tool, arguments)
    home.must("approvals", "allow", home.approvals()[0]["id"], "--always")
    server.stop()


def prepare(home, guests):
    """Prepares the home, and returns the run and the server whose calls wait, and the options of a console for it."""
    desk = home.folder / "desk"
    shutil.copytree(Path(home.crib) / "demo", desk)
    home.write("counting/count.md", COUNT)
    home.write("upload/tools.json", {"tools": [UPLOAD | {"command": [f"{guests}/echo.wasm"]}]})
    tools = ["--tools", home.crib, "--tools", home.folder / "counting", "--tools", home.folder / "upload"]
    grant = ["--allow-write=desk/desk"]
    home.must("run", "--script", ROOT / "cli/demo/script.json", *tools[:2], "--allow-write=desk", folder=desk)
    script = home.script(
        "outcomes.json",
        "Check the numbers of the order, and clean the desk.",
        (
            "First the numbers.",
            ("calculate", {"expression": "12 * 7.5"}),
            ("calculate", {"expression": "12 **"}),
            ("count", {"rounds": 2_000_000_000}),
        ),
        (
            "Now the files.",
            ("fs_read_file", {"path": "../safe/combination.txt"}),
            ("fs_rm", {"path": "letter.md"}),
            ("fs_list_dir", {"path": "."}),
        ),
        answer="The order is 90 hours. The letter stays: I may not remove it.",
    )
    home.must("run", "--script", script, *tools, *grant, "--set=limits.tool_timeout=300ms", "--deny-tool=fs_rm(path=*letter.md)")
    series = [{"name": "shop", "values": [7.5, 6, 8.25]}]
    chart = {"title": "Hours of the week", "labels": ["Mon", "Tue", "Wed"], "series": series}
    home.must("run", "--script", home.script("chart.json", "Show the hours.", ("", ("chart", chart))), *tools)
    permanent(home, tools, "get_time", {"timezone": "UTC"})
    flags = [*tools, *grant, "--ask-tool=fs_rm"]
    waiting = home.script("waiting.json", "Remove the old plan.", ("It is out of date.", ("fs_rm", {"path": "plan.md"})))
    run = Running(home, "run", "--script", waiting, "--json", "--wait-approval=60m", *flags)
    run.until("approvals pending")
    server = Server(home, *flags)
    server.call("fs_rm", {"path": "board.csv"})
    return run, server, tools + grant


def views(home):
    """Views that links alone do not lead to, by the kinds of what they show."""
    runs = [run["id"] for run in json.loads(home.must("runs", "list", "--json"))]
    return [
        "",
        "runs",
        "runs?q=nothing+of+this",
        "calls",
        "calls?outcome=denied",
        "tools",
        "tool?name=count",
        "tool?name=fs_read_lines",
        "verify",
        "decisions",
        "nothing",
        *(f"runs/{run}" for run in runs),
    ]
