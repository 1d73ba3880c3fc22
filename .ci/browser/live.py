"""Live updates: a hundred calls a second, beside one and five viewers of a log of some ten thousand calls."""

import threading
import time

from playwright.sync_api import expect

from costs import frames, heap
from home import PATIENCE, Console, Server
from window import Window

RATE = 100
# Seconds for a number of viewers.
SECONDS = {1: 10, 5: 5}
# Collects the time of each frame until the text of the last call is shown.
WATCH = """() => {
  window.toolcribFrames = [];
  let last = performance.now();
  const step = (now) => { window.toolcribFrames.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""


def pace(server, number):
    """Makes calls at the rate, without waiting for their results."""
    begun = time.monotonic()
    for at in range(RATE * SECONDS[number]):
        time.sleep(max(0, begun + at / RATE - time.monotonic()))
        server.request("tools/call", {"name": "calculate", "arguments": {"expression": f"{number} + {at}"}})
    server.call("get_time", {"timezone": f"Etc/GMT+{number}"})


def check(report, browser, home):
    flags = ["--tools", home.crib]
    server = Server(home, *flags)
    server.call("calculate", {"expression": "1"})
    server.call("get_time", {"timezone": "UTC"})
    for number in SECONDS:
        console = Console(home, *flags)
        windows = [Window(browser, console) for _ in range(number)]
        for window in windows:
            window.open("calls")
            window.page.evaluate(WATCH)
        window = windows[0]
        before, since = heap(window), console.processor_seconds()
        load = threading.Thread(target=pace, args=(server, number))
        load.start()
        missed = 0
        for window in windows:
            try:
                window.page.get_by_text(f"Etc/GMT+{number}").first.wait_for(timeout=PATIENCE * 1000)
            except Exception:
                missed += 1
        load.join()
        window = windows[0]
        viewers = f"{number} viewer{'s' * (number > 1)}, {RATE} calls a second"
        spent = console.processor_seconds() - since
        report.case(f"{viewers}: each shows the last call", not missed, missed)
        late = frames(report, viewers, window.page.evaluate("window.toolcribFrames.slice(2)"))
        after = heap(window)
        report.figure(f"{viewers}: memory of the page, before and after", f"{before / 1e6:.1f} and {after / 1e6:.1f} MB")
        report.figure(f"{viewers}: processor time of the server a second", f"{spent / SECONDS[number] * 1000:.0f} ms")
        report.case(f"{viewers}: frames go on", late < 500, late)
        report.case(f"{viewers}: the page does not grow", after < before + 30e6, (before, after))
        faults = [fault for window in windows for fault in window.faults()]
        report.case(f"{viewers}: no error", not faults, faults)
        console.stop()
        expect(windows[0].page.locator("#live")).to_have_text("not live")
        report.case(f"{viewers}: a page says that it is not live without its console", True)
        for window in windows:
            window.close()
    server.stop()
