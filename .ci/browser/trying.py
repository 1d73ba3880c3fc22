"""Calls that a person makes by a form: filled by the keyboard, previewed, and made; with a picture, a question and a refusal."""

import base64
import re

from playwright.sync_api import expect

import views
from home import Console
from hostile import PICTURE
from window import Window, press


def begin(window, tool):
    """Opens the form of a tool by the link of its page."""
    window.open(f"tool?name={tool}")
    window.page.get_by_role("link", name="Try a call").click()
    expect(window.page.get_by_role("heading", level=1)).to_contain_text("Try")


def submit(page, name):
    """Presses a button that is the last of its name, and waits for the page after it."""
    with page.expect_navigation():
        press(page, page.get_by_role("button", name=name).last)


def end(page):
    """Waits for the result of a call; the page of one that still runs offers to show its state."""
    result = page.get_by_role("heading", name="Result")
    again = page.get_by_role("link", name="Show its state now")
    while not result.is_visible():
        with page.expect_navigation():
            again.click()


def field(page, name):
    return page.get_by_label(re.compile(rf"^{name}\b")).last


def group(page, name):
    return page.get_by_role("group", name=re.compile(rf"^{name}\b")).first


def chart(report, window, axe, shots):
    """A chart by its fields, with lists and an object in a list."""
    page = window.page
    begin(window, "chart")
    views.look(report, window, axe, shots, "try")
    page.set_viewport_size({"width": 1280, "height": 800})
    field(page, "title").fill("Hours of the week")
    for name, wanted in [("labels", 3), ("series", 1)]:
        while group(page, name).locator(".item").count() < wanted:
            with page.expect_navigation():
                group(page, name).get_by_role("button", name="Add item").last.click()
    while group(page, "values").locator(".item").count() < 3:
        with page.expect_navigation():
            group(page, "values").get_by_role("button", name="Add item").last.click()
    for item, text in enumerate(["Mon", "Tue", "Wed"]):
        group(page, "labels").locator(".item").nth(item).locator("textarea, input").first.fill(text)
    field(page, "name").fill("shop")
    for item, text in enumerate(["7.5", "6", "8.25"]):
        group(page, "values").locator(".item").nth(item).locator("textarea, input").first.fill(text)
    kept = field(page, "title").input_value()
    report.case("a form keeps what was typed while it grows", kept == "Hours of the week", kept)
    submit(page, "Preview")
    text = page.inner_text("main")
    report.case("a call is previewed before it is made", "Make this call" in text and "7.5" in text, text)
    views.look(report, window, axe, shots, "try-preview")
    submit(page, "Make this call")
    end(page)
    picture = page.locator("main img")
    drawn = picture.evaluate("async (image) => { await image.decode(); return image.naturalWidth; }")
    report.case("the chart tool draws a picture", drawn > 0 and picture.get_attribute("alt"), page.inner_text("main"))
    views.look(report, window, axe, shots, "try-result")


def wrong(report, window, axe, shots):
    """Wrong arguments get their messages at their fields."""
    page = window.page
    page.set_viewport_size({"width": 1280, "height": 800})
    begin(window, "fs_read_lines")
    field(page, "path").fill("a.md")
    field(page, "start").fill("0")
    submit(page, "Preview")
    expect(page.get_by_role("alert").first).to_be_visible()
    invalid = page.locator("[aria-invalid=true]")
    report.case(
        "a wrong value has a message at its field", invalid.count() == 1 and invalid.input_value() == "0", page.content()[-3000:]
    )
    views.look(report, window, axe, shots, "try-wrong")


def check(report, window, axe, shots):
    chart(report, window, axe, shots)
    wrong(report, window, axe, shots)


def file(report, window):
    """Sends the content of a file, which the script of the page makes base64."""
    page = window.page
    begin(window, "upload")
    page.get_by_label("Choose a file").set_input_files({"name": "a.bin", "mimeType": "image/png", "buffer": bytes(range(256))})
    expect(page.get_by_text("256 bytes")).to_be_visible()
    content = field(page, "content").input_value()
    report.case("the content of a file fills its field", content == base64.b64encode(bytes(range(256))).decode(), content)
    page.get_by_label("Choose a file").set_input_files({"name": "b", "mimeType": "", "buffer": bytes(700_001)})
    expect(page.get_by_text("more than 700,000 bytes")).to_be_visible()
    # A form writes each `/` as three characters.
    page.get_by_label("Choose a file").set_input_files({"name": "c", "mimeType": "", "buffer": b"\xff" * 600_000})
    expect(page.get_by_text("too large for a form")).to_be_visible()
    kept = field(page, "content").input_value()
    report.case("a file that a form cannot hold leaves the field as it is", kept == content, kept[:100])
    submit(page, "Preview")
    submit(page, "Make this call")
    end(page)
    text = page.inner_text("main")
    report.case("and is sent with the form", "AAECAwQF" in text and not window.faults(), text)


def endless(report, browser, home, component):
    """Makes a call that shows parts without an end, and looks at the page while it does and after it is stopped."""
    console = Console(home, "--tools", component, "--set=limits.max_timeout=5m")
    window = Window(browser, console)
    page = window.page
    begin(window, "flood")
    field(page, "count").fill("4294967295")
    field(page, "bytes").fill("1000")
    submit(page, "Preview")
    submit(page, "Make this call")
    longest, ended = 0, False
    for _ in range(5):
        longest = max(longest, len(page.content()))
        if not (again := page.get_by_role("link", name="Show its state now")).is_visible():
            ended = True
            break
        with page.expect_navigation():
            again.click()
    if not ended:
        submit(page, "Stop the call")
        end(page)
    text = page.inner_text("main")
    longest = max(longest, len(page.content()))
    faults = window.faults()
    report.case("endless parts leave the page small", longest < 1 << 20 and not faults, (longest, faults, text[:2000]))
    report.case("and their number is shown", "part" in text, text[:2000])
    report.figure("largest page of a call with endless parts", f"{longest >> 10} KiB")
    window.close()
    console.stop()


def hostile(report, window):
    """Reads a drawing with scripts by a form."""
    page = window.page
    begin(window, "fs_read_file")
    group(page, "path").locator("textarea, input").first.fill("picture.svg")
    submit(page, "Preview")
    submit(page, "Make this call")
    end(page)
    text = page.inner_text("main")
    faults = window.faults()
    report.case("a drawing with scripts in a result is inert", PICTURE[:40] in text and not faults, (faults, text))
