"""Parts of `.ci/console`, which prepares their requirements:

main.py PROGRAM CRIB WORK BROWSER AXE GUESTS
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

import costs
import deciding
import hostile
import live
import origins
import shop
import tampering
import trying
import views
from home import PATIENCE, Console, Home
from report import Report
from window import Window

PROGRAM, CRIB, WORK, BROWSER, AXE, GUESTS = sys.argv[1:7]


def main():
    report, work = Report(), Path(WORK)
    expect.set_options(timeout=PATIENCE * 1000)
    shots, homes = work / "screenshots", work / "homes"
    for folder in (shots, homes):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    home_at = lambda name: Home(homes / name, PROGRAM, CRIB, work / "cache")
    axe = Path(AXE).read_text()
    options = [f"--host-resolver-rules=MAP {origins.REBINDING} 127.0.0.1", "--no-sandbox", "--enable-precise-memory-info"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=options)
        home, known = home_at("shop"), []
        with report.part("runs, calls, approvals and calls that wait"):
            run, server, tools = shop.prepare(home, GUESTS)
            waiting = [call for call in home.approvals() if "answer" not in call]
            report.case("a run and an MCP client wait for a decision", len(waiting) == 2, waiting)
        console = Console(home, *tools, "--share-read")
        window = Window(browser, console)
        with report.part("an empty home"):
            blank = Console(home_at("blank"), "--tools=builtin")
            first = Window(browser, blank)
            views.check(report, first, axe, shots, ["runs", "calls", "decisions"], "empty-", views.HALF)
            first.close()
            blank.stop()
        with report.part("every view"):
            known = views.crawl(window, shop.views(home))
            views.check(report, window, axe, shots, known)
            window.page.set_viewport_size({"width": 1280, "height": 800})
            window.page.emulate_media(color_scheme="light")
        with report.part("keyboard"):
            deciding.walk(report, window, known)
        with report.part("other origins"):
            origins.check(report, browser, window, home)
        with report.part("decisions"):
            looks = Window(browser, console, address=console.addresses[1])
            deciding.read_only(report, looks)
            views.check(report, looks, axe, shots, ["decisions"], "read-only-", views.HALF)
            looks.close()
            deciding.clicks(report, window, home, run, server)
            deciding.waits(report, window, home, tools)
            deciding.denies(report, window, server)
            deciding.by_keyboard(report, window, home, server)
            server.stop()
        with report.part("calls by a form"):
            trying.check(report, window, axe, shots)
            trying.file(report, window)
            window.page.set_viewport_size({"width": 1280, "height": 800})
            window.page.emulate_media(color_scheme="light")
        with report.part("a log that was changed"):
            tampering.check(report, window, home, shots)
        window.close()
        console.stop()
        with report.part("hostile texts"):
            home = home_at("hostile")
            server, tools = hostile.prepare(home)
            console = Console(home, *tools)
            window = Window(browser, console)
            known = hostile.found(window)
            hostile.check(report, window, known)
            trying.hostile(report, window)
            trying.endless(report, browser, home, f"{GUESTS}/rich.wasm")
            views.check(report, window, axe, shots, hostile.kinds(known), "hostile-", views.HALF)
            window.close()
            console.stop()
            server.stop()
        with report.part("costs"):
            costs.start(report, browser, home_at("start"), ["--tools=builtin"])
            many = home_at("many")
            costs.many(report, browser, many)
        with report.part("live updates"):
            live.check(report, browser, many)
        browser.close()
    return report.end()


sys.exit(main())
