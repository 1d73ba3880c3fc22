"""Pages of another origin, a rebinding name, a frame, and a stolen address: none of them reads a page or decides."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from window import Window

REBINDING = "rebind.example"


class Elsewhere(BaseHTTPRequestHandler):
    """Another program that listens on this machine, with pages that a test sets."""

    pages = {}

    def do_GET(self):
        text = self.pages.get(self.path.partition("?")[0], "").encode()
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


def check(report, browser, window, home, console):
    """The window has a session, and a call waits; other pages of the same browser attack."""
    context, base = window.context, console.origin + window.path
    window.open("decisions")
    fields = window.page.eval_on_selector("form.decide", "(form) => [...new FormData(form)]")
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in [*fields, ["answer", "once"]])
    undecided = lambda: not any("answer" in call for call in home.approvals() if call["tool"] == "fs_rm")
    with elsewhere() as other:
        for name, attributes in [("form", ""), ("form without a referrer", 'rel="noreferrer"'), ("form to a new page", 'target="_blank"')]:
            Elsewhere.pages["/form"] = f'<form method="post" action="{base}decisions" {attributes}>{inputs}<button>go</button></form>'
            page = context.new_page()
            page.goto(other + "/form")
            with context.expect_event("response", lambda answer: answer.request.method == "POST") as answered:
                page.click("button")
            report.case(f"{name} of another origin, with a stolen token of a form, is refused", answered.value.status == 403 and undecided(), answered.value.status)
            page.close()
        page = context.new_page()
        Elsewhere.pages["/empty"] = "<title>elsewhere</title>"
        page.goto(other + "/empty")
        for how in ["cors", "no-cors"]:
            got = page.evaluate(f"fetch('{base}decisions', {{credentials: 'include', mode: '{how}'}}).then((r) => r.text().then((t) => r.type + t)).catch((e) => 'refused')")
            report.case(f"a fetch of another origin ({how}) reads nothing", got == "refused", got)
            sent = f"fetch('{base}decisions', {{method: 'POST', credentials: 'include', mode: '{how}', body: new URLSearchParams({dict(fields) | {'answer': 'once'}})}}).then((r) => r.type).catch((e) => 'refused')"
            got = page.evaluate(sent)
            report.case(f"a fetch of another origin ({how}) decides nothing", got == "refused" and undecided(), got)
        listen = f"""new Promise((done) => {{ const events = new EventSource('{base}events?page=calls', {{ withCredentials: true }});
            events.onopen = () => done('open'); events.onerror = () => done('refused'); }})"""
        got = page.evaluate(listen)
        report.case("another origin gets no events", got == "refused", got)
        for tag in ["iframe", "embed", "object"]:
            source = "data" if tag == "object" else "src"
            Elsewhere.pages["/frame"] = f'<{tag} {source}="{base}decisions" width="600" height="400"></{tag}>'
            with page.expect_response(lambda answer: answer.url == base + "decisions") as answered:
                page.goto(other + "/frame")
            report.case(f"a page gets no console for its {tag}", answered.value.status == 403, answered.value.status)
        for tag in [f'<script src="{base}decisions"></script>', f'<script src="{console.origin}/live.js"></script>', f'<img src="{base}decisions">', f'<link rel="stylesheet" href="{base}decisions">']:
            Elsewhere.pages["/inside"] = tag
            failed = []
            page.on("requestfailed", lambda request, failed=failed: failed.append(request.failure))
            page.goto(other + "/inside", wait_until="load")
            report.case(f"`{tag[:8].strip()}` of another origin gets nothing", bool(failed), failed)
        opened = page.evaluate(f"""() => {{ const one = open('{base}decisions'); return new Promise((done) => {{
            const look = () => {{ if (one.closed) return done('parted'); try {{ if (one.document.title === '') requestAnimationFrame(look);
              else done(one.document.title); }} catch (error) {{ done('parted'); }} }}; look(); }}); }}""")
        report.case("a page that opens the console is parted from it", opened == "parted", opened)
        page.close()
    stranger = Window(browser, console, address=base + "decisions")
    text = stranger.page.inner_text("body")
    report.case("a stolen address without its cookie shows nothing", "No session" in text and "fs_rm" not in text, text)
    rebound = base.replace("127.0.0.1", REBINDING)
    for address in [rebound + "decisions", console.address.replace("127.0.0.1", REBINDING)]:
        answer = stranger.page.goto(address)
        text = stranger.page.inner_text("body")
        report.case("a name that leads to this machine is refused", answer.status == 403 and "Another host" in text, text)
    report.case("it began no session", not stranger.context.cookies(), stranger.context.cookies())
    stranger.close()
    # In the browser of the person too, whose cookie belongs to another host.
    answer = (page := context.new_page()).goto(rebound + "decisions")
    report.case("also in the browser that has a session", answer.status == 403 and undecided(), answer.status)
    page.close()
