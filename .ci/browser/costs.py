"""Measurements: the start beside an empty page, and 10,000 calls listed, filtered and scrolled. Only generous ratios fail."""

import statistics
import time

from home import Console, Server
from origins import Elsewhere, elsewhere
from window import Window

# Starts that are measured; more on a machine that is busy meanwhile.
MIN_STARTS, MAX_STARTS = 5, 20
# Time of a start of the program to its first view, over that of an empty page, in milliseconds.
MAX_START = 200
CALLS = 10_000
# Views of them, each with its number of rows.
STEPS = [
    ("list", "calls", 50),
    ("last page", "calls?page=200", 50),
    ("filter by tool", "calls?tool=get_*", 1),
    ("filter by text", "calls?q=4711+%2B", 1),
    ("filter without a match", "calls?q=nothing+of+this", 0),
    ("verify", "verify", 0),
]
# Scrolls for some frames, and returns the time of each in milliseconds.
SCROLL = """(frames) => new Promise((done) => {
  const times = [], page = document.scrollingElement;
  let last = performance.now(), by = 120;
  const step = (now) => {
    times.push(now - last);
    last = now;
    if (page.scrollTop + innerHeight >= page.scrollHeight - 1) by = -120;
    if (page.scrollTop <= 0) by = 120;
    page.scrollBy(0, by);
    if (times.length < frames) requestAnimationFrame(step); else done(times.slice(1));
  };
  requestAnimationFrame(step);
})"""


def milliseconds(since):
    return (time.perf_counter() - since) * 1000


def start(report, browser, home, flags):
    """Compares the first view of a new program with an empty page of a server that runs already."""
    empty, first = [], []
    Elsewhere.pages["/empty"] = "<title>empty</title>"
    with elsewhere() as other:
        while len(first) < MIN_STARTS or (min(first) - min(empty) >= MAX_START and len(first) < MAX_STARTS):
            context = browser.new_context()
            page = context.new_page()
            since = time.perf_counter()
            page.goto(other + "/empty", wait_until="load")
            empty.append(milliseconds(since))
            context.close()
            context = browser.new_context()
            page = context.new_page()
            since = time.perf_counter()
            console = Console(home, *flags)
            page.goto(console.address, wait_until="load")
            first.append(milliseconds(since))
            context.close()
            console.stop()
    report.figure("empty page of a running server (median)", f"{statistics.median(empty):.0f} ms")
    report.figure("start of the program to its first view (median)", f"{statistics.median(first):.0f} ms")
    over = min(first) - min(empty)
    report.figure("of that over the empty page (best of each)", f"{over:.0f} ms")
    report.case(f"the first view comes within {MAX_START} ms of an empty page", over < MAX_START, (empty, first))


def heap(window):
    """Memory of the scripts and elements of the page after a collection, in bytes."""
    session = window.context.new_cdp_session(window.page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used


def frames(report, name, times):
    ordered = sorted(times)
    late = ordered[int(len(ordered) * 0.95)]
    report.figure(f"{name}: frame, median and 95 %", f"{statistics.median(ordered):.1f} and {late:.1f} ms")
    return late


def many(report, browser, home):
    """10,000 calls of an MCP client in one log."""
    flags = ["--tools", home.crib]
    server = Server(home, *flags)
    since = time.perf_counter()
    server.calls("calculate", ({"expression": f"{at} + 1"} for at in range(CALLS - 1)))
    server.call("get_time", {"timezone": "Europe/Helsinki"})
    report.figure(f"{CALLS:,} calls of an MCP client", f"{milliseconds(since) / 1000:.1f} s")
    server.stop()
    console = Console(home, *flags)
    window = Window(browser, console)
    page, took = window.page, {}
    for name, view, wanted in STEPS:
        since = time.perf_counter()
        status = window.open(view)
        took[name] = milliseconds(since)
        rows = page.locator("tbody tr").count()
        report.figure(f"{CALLS:,} calls, {name}", f"{took[name]:.0f} ms")
        is_right = status == 200 and rows == wanted and not window.faults()
        report.case(f"of {CALLS:,} calls, `{name}` shows {wanted} rows", is_right, (status, rows))
    window.open("calls")
    page.get_by_label("Tool").fill("get_*")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    report.case("the form of the filter finds the one call of a tool", page.locator("tbody tr").count() == 1)
    window.open("calls")
    before = heap(window)
    late = frames(report, "scroll of a list", page.evaluate(SCROLL, 240))
    report.figure("memory of the page, before and after the scroll", f"{before / 1e6:.1f} and {heap(window) / 1e6:.1f} MB")
    report.figure("memory of the server", f"{console.memory() / 1e6:.0f} MB")
    report.case("the list scrolls without long frames", late < 250, late)
    report.case("no step of the list takes 5 seconds", max(took.values()) < 5000, took)
    window.close()
    console.stop()
