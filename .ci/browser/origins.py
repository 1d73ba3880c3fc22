"""Pages of another origin, a rebinding name, a frame, and a stolen address: none of them reads a page or decides."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from window import Window

REBINDING = "rebind.example"
# Each takes an address, and the fields of a form where it sends one, and returns what it got.
READ = """([address, mode]) => fetch(address, { credentials: 'include', mode })
  .then(async (answer) => answer.type + await answer.text()).catch(() => 'refused')"""
SEND = """([address, mode, fields]) => fetch(address, { method: 'POST', credentials: 'include', mode,
  body: new URLSearchParams(fields) }).then((answer) => answer.type).catch(() => 'refused')"""
LISTEN = """(address) => new Promise((done) => {
  const events = new EventSource(address, { withCredentials: true });
  events.onopen = () => done('open');
  events.onerror = () => done('refused');
})"""
# Waits until the opened page has a title that can be read, or has left this one.
OPEN = """(address) => new Promise((done) => {
  const page = open(address);
  const look = () => {
    try {
      if (page.closed) done('parted');
      else if (page.document.title) done(page.document.title);
      else requestAnimationFrame(look);
    } catch { done('parted'); }
  };
  look();
})"""


class Elsewhere(BaseHTTPRequestHandler):
    """Another program that listens on this machine, with pages that a test sets."""

    pages = {}

    def do_GET(self):
        text = self.pages.get(self.path, "").encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def elsewhere():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


class Attack:
    """Another origin in the browser of a person who has a session, in which a call waits."""

    def __init__(self, report, window, home, other):
        self.report, self.window, self.home, self.other = report, window, home, other
        self.base = window.console.origin + window.path
        self.decisions = self.base + "decisions"
        window.open("decisions")
        fields = window.page.eval_on_selector("form.decide", "(form) => Object.fromEntries(new FormData(form))")
        self.fields = fields | {"answer": "once"}

    def case(self, name, is_refused, got):
        """A case is right if the attack was refused, and the call still waits."""
        decided = [call for call in self.home.approvals() if call["tool"] == "fs_rm" and "answer" in call]
        self.report.case(name, is_refused and not decided, (got, decided))

    def page(self, text):
        """Opens a page of the other origin."""
        Elsewhere.pages["/page"] = text
        page = self.window.context.new_page()
        page.goto(self.other + "/page", wait_until="load")
        return page

    def forms(self):
        inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in self.fields.items())
        for attributes in ["", 'rel="noreferrer"', 'target="_blank"']:
            page = self.page(f'<form method="post" action="{self.decisions}" {attributes}>{inputs}<button>go</button></form>')
            with self.window.context.expect_event("response", lambda answer: answer.request.method == "POST") as answered:
                page.click("button")
            status = answered.value.status
            self.case(f"a form of another origin with a stolen token is refused {attributes}".strip(), status == 403, status)
            page.close()

    def scripts(self):
        page = self.page("<title>elsewhere</title>")
        for mode in ["cors", "no-cors"]:
            got = page.evaluate(READ, [self.decisions, mode])
            self.case(f"a fetch of another origin reads nothing ({mode})", got == "refused", got)
            got = page.evaluate(SEND, [self.decisions, mode, self.fields])
            self.case(f"a fetch of another origin decides nothing ({mode})", got == "refused", got)
        got = page.evaluate(SEND, [self.base + "tool/call", "no-cors", self.fields | {"name": "fs_rm", "do": "preview"}])
        self.case("a fetch of another origin tries no call", got == "refused", got)
        got = page.evaluate(LISTEN, self.base + "events?page=calls")
        self.case("another origin gets no events", got == "refused", got)
        got = page.evaluate(OPEN, self.decisions)
        self.case("a page that opens the console is parted from it", got == "parted", got)
        page.close()

    def elements(self):
        page = self.page("")
        for tag, source in [("iframe", "src"), ("embed", "src"), ("object", "data")]:
            Elsewhere.pages["/frame"] = f'<{tag} {source}="{self.decisions}" width="600" height="400"></{tag}>'
            with page.expect_response(self.decisions) as answered:
                page.goto(self.other + "/frame")
            status = answered.value.status
            self.case(f"a page gets no console for its {tag}", status == 403, status)
        script = self.window.console.origin + "/live.js"
        for element in [
            f'<script src="{self.decisions}"></script>',
            f'<script src="{script}"></script>',
            f'<img src="{self.decisions}">',
            f'<link rel="stylesheet" href="{self.decisions}">',
        ]:
            failed = []
            page.on("requestfailed", lambda request, failed=failed: failed.append(request.failure))
            Elsewhere.pages["/inside"] = element
            page.goto(self.other + "/inside", wait_until="load")
            path = element.partition("=")[2].replace(self.base, "").replace(self.window.console.origin, "")
            self.case(f"{element.partition('=')[0]}={path} of another origin gets nothing", bool(failed), failed)
        page.close()

    def names(self, browser):
        """A browser without a session, and names that lead to this machine."""
        console = self.window.console
        stranger = Window(browser, console, address=self.decisions)
        text = stranger.page.inner_text("body")
        self.case("a stolen address without its cookie shows nothing", "No session" in text and "fs_rm" not in text, text)
        for address in [self.decisions, console.address]:
            answer = stranger.page.goto(address.replace("127.0.0.1", REBINDING))
            text = stranger.page.inner_text("body")
            self.case("a name that leads to this machine is refused", answer.status == 403 and "Another host" in text, text)
        self.case("it began no session", not stranger.context.cookies(), stranger.context.cookies())
        stranger.close()
        page = self.window.context.new_page()
        status = page.goto(self.decisions.replace("127.0.0.1", REBINDING)).status
        self.case("also in the browser that has a session", status == 403, status)
        page.close()


def check(report, browser, window, home):
    with elsewhere() as other:
        attack = Attack(report, window, home, other)
        attack.forms()
        attack.scripts()
        attack.elements()
        attack.names(browser)
    # A page behind another one draws rarely.
    for page in window.context.pages:
        if page is not window.page:
            page.close()
    window.page.bring_to_front()
