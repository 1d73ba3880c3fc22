"""A browser with pages that are watched: errors of a page, violations of its policy, dialogs, requests to elsewhere, and a script
of a hostile text that ran."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import Error

from home import PATIENCE

# Maximum clicks on an action whose page changes meanwhile.
PRESSES = 100

# Hostile texts set this, if anything executes them.
MARKER = "toolcribHostile"
WATCH = """
  window.toolcribViolations = [];
  addEventListener('securitypolicyviolation', (event) =>
    window.toolcribViolations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`), true);
"""
# Waits until the page shows what it has drawn.
FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


def press(page, action):
    """Clicks an action of a form, until the page takes it: one that has just changed asks for another click."""
    for _ in range(PRESSES):
        action.click()
        try:
            if "click again" not in page.evaluate("document.getElementById('spoken')?.textContent ?? ''"):
                return
        except Error:
            # The page is left.
            return


class Window:
    """A browser context with one page of a console."""

    def __init__(self, browser, console, width=1280, height=800, scheme="light", address=None):
        self.console = console
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.context.set_default_timeout(PATIENCE * 1000)
        self.page = self.context.new_page()
        self.problems, self.requests = [], []
        self.watch(self.page)
        self.page.goto(address or console.address, wait_until="load")
        self.path = "/" + urlsplit(self.page.url).path.split("/")[1] + "/"

    def watch(self, page):
        page.add_init_script(WATCH)
        page.on("console", self.said)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda popup: self.problems.append(f"opened: {popup.url}"))
        page.on("request", self.requested)

    def said(self, message):
        # Chromium says that it got a page with an error. The checks look at its status.
        is_status = message.text.startswith("Failed to load resource") and message.location["url"] == self.page.url
        if message.type in ("error", "warning") and not is_status:
            self.problems.append(f"{message.type}: {message.text}")

    def requested(self, request):
        self.requests.append(request)
        if not request.url.startswith((self.console.origin + "/", "data:")):
            self.problems.append(f"request to {request.url}")

    def open(self, view):
        """Opens a page of the session, and returns its status."""
        self.requests.clear()
        answer = self.page.goto(f"{self.console.origin}{self.path}{view}", wait_until="load")
        return answer.status

    def faults(self):
        """Returns everything that a page must not do, since the last look."""
        found = [*self.problems, *(f"violation: {text}" for text in self.page.evaluate("window.toolcribViolations"))]
        if self.page.evaluate(f"'{MARKER}' in window"):
            found.append("a hostile text was executed")
        self.problems.clear()
        self.page.evaluate("window.toolcribViolations = []")
        return found

    def weight(self):
        """Returns the number of requests of the last page, and their bytes as sent, without a stream of events."""
        own = (request for request in self.requests if request.url.startswith(self.console.origin + "/"))
        sizes = [request.sizes() for request in own if request.resource_type != "eventsource"]
        return len(sizes), sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes)

    def links(self):
        """Returns addresses of pages of the session that this page links to, without files."""
        all = self.page.eval_on_selector_all("a[href]:not([href*='/export'])", "(links) => links.map((link) => link.href)")
        start = self.console.origin + self.path
        return [link[len(start) :] for link in all if link.startswith(start)]

    def press(self, action):
        press(self.page, action)

    def close(self):
        self.context.close()


def shape(view):
    """Returns the kind of a view: its address without identifiers and values."""
    path, _, query = view.partition("#")[0].partition("?")
    parts = [part if re.fullmatch(r"[a-z]+", part) else "*" for part in path.split("/")]
    return "/".join(parts) + "?" * bool(query) + "&".join(sorted(one.split("=")[0] for one in query.split("&")))
