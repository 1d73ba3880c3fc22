"""Hostile texts through real doors: prompts, answers, calls, results, definitions, clients, rules and reasons. All are inert."""

import json
from urllib.parse import quote

from home import Server
from views import crawl
from window import MARKER, shape

SCRIPT = f"window.{MARKER}=1;fetch('http://evil.example/x');alert(1)"
# Text that would be a script, another element, an end of an attribute, or another direction.
TEXT = (
    f'<script>{SCRIPT}</script><img src=x onerror="{SCRIPT}"><svg onload="{SCRIPT}"></svg>'
    f'<a href="javascript:{SCRIPT}">go</a><iframe src=http://evil.example></iframe><style>*{{display:none}}</style>'
    '<base href=http://evil.example><meta http-equiv=refresh content="0;url=http://evil.example">'
    "<form action=http://evil.example><button>Allow once</button></form>"
    "\"'>]]>-->&amp;\u202egnorw\u202c\u2066\u200b\ufeff\x1b[2J\x07{{7*7}}${7*7}"
)
# Characters that may only be shown as escapes.
RAW = "\u202e\u2066\u200b\ufeff\x1b\x07"
# Elements that only such a text would bring.
ELEMENTS = (
    "script:not([src='/live.js']), iframe, object, embed, base, style, meta[http-equiv], [onload], [onerror], a[href^=javascript]"
)
PICTURE = (
    f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{SCRIPT}\"><script>{SCRIPT}</script>"
    "<image href='http://evil.example/x.png'/></svg>"
)
LONG = "y" * (1 << 20)
STRING = json.dumps(TEXT)
TOOL = f"""---
parameters:
  text: {{type: string, description: {STRING}, default: {STRING}, enum: [{STRING}]}}
script: |
  def run(args):
      print(args)
      return {{"error": args}}
---
{TEXT}"""


def prepare(home):
    """Prepares the home, and returns the server that holds calls that wait, and the options of a console for it."""
    home.write("work/picture.svg", PICTURE)
    home.write(f"work/{TEXT[:40].replace('/', ' ')}.txt", TEXT)
    home.write("tools/hostile.md", TOOL)
    tools = ["--tools", home.crib, "--tools", home.folder / "tools"]
    rules = ["--deny-tool=fs_rm(path=<script>*)", "--ask-tool=fs_write_file(path=*<svg onload=*)"]
    flags = [*tools, f"--allow-read={home.folder}/work", *rules]
    calls = [
        ("hostile", {"text": TEXT}),
        (TEXT[:200], {TEXT: TEXT}),
        ("fs_read_file", {"path": "picture.svg"}),
        ("fs_read_file", {"path": TEXT}),
        ("fs_rm", {"path": "<script>alert(1)</script>"}),
        ("fs_list_dir", {"path": "."}),
    ]
    folder = home.folder / "<img src=x onerror=alert(1)>"
    folder.mkdir()
    home.must("run", "--script", home.script("hostile.json", TEXT, (TEXT, *calls), answer=TEXT), *flags, folder=folder)
    calls = [(LONG, {"a": 1}), ("calculate", {"expression": LONG}), ("calculate", {LONG: 1})]
    home.must("run", "--script", home.script("long.json", LONG, (LONG, *calls), answer=LONG), *flags)
    server = Server(home, *flags, f"--allow-write={home.folder}/work", client=TEXT)
    for path, content in [(TEXT[:60], TEXT), ("z" * 3000, LONG)]:
        server.call("fs_write_file", {"path": f"<svg onload=x>{path}", "content": content})
    for answer in (["deny", "--reason", TEXT], ["allow", "--always"]):
        server.call("fs_write_file", {"path": f"<svg onload=x>{answer[0]}", "content": TEXT})
        home.must("approvals", answer[0], home.approvals()[-1]["id"], *answer[1:])
    return server, [*tools, f"--allow-read={home.folder}/work"]


def found(window):
    """Returns every view of the home, with the texts in their searches too."""
    given = quote(TEXT[:400])
    searches = [f"runs?q={given}&folder={given}", f"calls?q={given}", f"calls?tool={given}&day={given}", f"tools?q={given}"]
    views = ["runs", "calls", "tools", "tool?name=hostile", "decisions", "verify", *searches, f"tool?name={given}"]
    views = crawl(window, views)
    for part in ("runs", "calls"):
        window.open(part)
        views += [link for link in window.links() if link.startswith(part + "/") and link not in views]
    return views


def check(report, window, views):
    """Opens every view with everything in it, and looks for an effect."""
    page, wrong, shown = window.page, [], 0
    for view in views:
        window.open(view)
        for summary in page.locator("summary").all():
            summary.click()
        text = page.content()
        shown += "onerror=" in page.inner_text("body")
        problems = [*window.faults(), *(f"raw {character!r}" for character in RAW if character in text)]
        if elements := page.locator(ELEMENTS).count():
            problems.append(f"{elements} hostile elements")
        if not page.locator("main").is_visible():
            problems.append("hidden")
        if len(text) > 1 << 20:
            problems.append(f"{len(text)} characters")
        wrong += [f"{view}: {problem}" for problem in problems]
    report.case(f"hostile texts in {len(views)} views have no effect", not wrong and shown > 5, (shown, "\n".join(wrong)))


def kinds(views):
    """Returns one view of each kind, whose layout is checked with these texts too."""
    return list({shape(view): view for view in reversed(views)}.values())
