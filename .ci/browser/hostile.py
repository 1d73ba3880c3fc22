"""Hostile texts through real doors: prompts, answers, calls, results, definitions, clients, rules and reasons. All are inert."""

import json
from urllib.parse import quote

from home import Server
from views import crawl
from window import MARKER, shape

SCRIPT = f"window.{MARKER}=1;fetch('http://evil.example/x');alert(1)"
# Text that would be a script, another element, an end of an attribute, or another direction.
TEXT = (
    f"<script>{SCRIPT}</script><img src=x onerror=\"{SCRIPT}\"><svg onload=\"{SCRIPT}\"></svg><a href=\"javascript:{SCRIPT}\">go</a>"
    "<iframe src=http://evil.example></iframe><style>*{display:none}</style><base href=http://evil.example>"
    "<meta http-equiv=refresh content=\"0;url=http://evil.example\"><form action=http://evil.example><button>Allow once</button></form>"
    "\"'>]]>-->&amp;\u202egnorw\u202c\u2066\u200b\ufeff\x1b[2J\x07\u0000{{7*7}}${7*7}"
).replace("\0", "")
PICTURE = f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{SCRIPT}\"><script>{SCRIPT}</script><image href='http://evil.example/x.png'/></svg>"
MEGABYTE = 1 << 20
# Characters that may only be shown as escapes.
RAW = "\u202e\u2066\u200b\ufeff\x1b\x07"


def prepare(home):
    """Prepares the home, and returns the server that holds calls that wait, and the options of a console for it."""
    home.write("work/picture.svg", PICTURE)
    home.write(f"work/{TEXT[:40].replace('/', ' ')}.txt", TEXT)
    home.write("tools/hostile.md", "---\nparameters:\n  text: {type: string, description: " + quoted(TEXT) + ", default: " + quoted(TEXT)
               + ", enum: [" + quoted(TEXT) + "]}\nscript: |\n  def run(args):\n      print(args)\n      return {\"error\": args}\n---\n" + TEXT)
    tools = ["--tools", home.crib, "--tools", home.folder / "tools"]
    flags = [*tools, f"--allow-read={home.folder}/work", "--deny-tool=fs_rm(path=<script>*)", "--ask-tool=fs_write_file(path=*<svg onload=*)"]
    long = "y" * MEGABYTE
    calls = [("hostile", {"text": TEXT}), (TEXT[:200], {TEXT: TEXT}), ("fs_read_file", {"path": "picture.svg"}),
             ("fs_read_file", {"path": TEXT}), ("fs_rm", {"path": "<script>alert(1)</script>"}), ("fs_list_dir", {"path": "."})]
    home.must("run", "--script", home.script("hostile.json", TEXT, (TEXT, *calls), answer=TEXT), *flags, folder=folder(home))
    long_calls = [(long, {"a": 1}), ("calculate", {"expression": long}), ("calculate", {long: 1})]
    home.must("run", "--script", home.script("long.json", long, (long, *long_calls), answer=long), *flags)
    server = Server(home, *flags, f"--allow-write={home.folder}/work", client=TEXT)
    server.call("fs_write_file", {"path": f"<svg onload=x>{TEXT[:60]}", "content": TEXT})
    server.call("fs_write_file", {"path": "<svg onload=x>" + "z" * 3000, "content": long})
    for answer in (["deny", "--reason", TEXT], ["allow", "--always"]):
        server.call("fs_write_file", {"path": f"<svg onload=x>{answer[0]}", "content": TEXT})
        home.must("approvals", answer[0], home.approvals()[-1]["id"], *answer[1:])
    return server, tools


def folder(home):
    """Folder with a hostile name."""
    path = home.folder / "<img src=x onerror=alert(1)>"
    path.mkdir()
    return path


def quoted(text):
    """Text as a string of YAML."""
    return json.dumps(text)


def shown(views):
    """Views whose layout is checked with these texts too: one of each kind."""
    kinds = {shape(view): view for view in reversed(views)}
    return list(kinds.values())


def check(report, window):
    """Opens every view, with hostile texts in its search too, and looks for an effect."""
    page = window.page
    given = quote(TEXT[:400])
    searches = [f"runs?q={given}&folder={given}", f"calls?q={given}", f"calls?tool={given}&day={given}", f"tools?q={given}", f"tool?name={given}"]
    views = crawl(window, ["runs", "calls", "tools", "tool?name=hostile", "decisions", "verify", *searches])
    window.open("runs")
    views += [link for link in window.links() if link.startswith("runs/") and link not in views]
    window.open("calls")
    views += [link for link in window.links() if link.startswith("calls/") and link not in views]
    wrong, shown = [], 0
    for view in views:
        window.open(view)
        for summary in page.locator("summary").all():
            summary.click()
        text = page.content()
        shown += "onerror=" in page.inner_text("body")
        wrong += [f"{view}: {fault}" for fault in window.faults()]
        wrong += [f"{view}: {character!r}" for character in RAW if character in text]
        elements = page.locator("script:not([src='/live.js']), iframe, object, embed, base, style, meta[http-equiv], [onload], [onerror], a[href^=javascript]").count()
        if elements:
            wrong.append(f"{view}: {elements} hostile elements")
        if not page.locator("main").is_visible():
            wrong.append(f"{view}: hidden")
        if len(text) > 1 << 20:
            wrong.append(f"{view}: {len(text)} characters")
    report.case(f"hostile texts in {len(views)} views have no effect", not wrong and shown > 5, (shown, "\n".join(wrong)))
    return views
