"""Decisions by a click and by the keyboard alone: a run and a call of an MCP client that wait go on, and a repeated call passes."""

import json

from playwright.sync_api import TimeoutError, expect

from home import Server

# Everything that a person can act on, in the order of the page.
ACTIONS = """() => {
  const all = [...document.querySelectorAll(
    'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')];
  // The arrow keys reach the others of a group of radio buttons.
  const first = (one) => document.querySelector(`[name="${CSS.escape(one.name)}"]:checked, [name="${CSS.escape(one.name)}"]`);
  window.toolcribActions = all.filter((one) => one.checkVisibility() && !one.matches(':disabled')
    && (one.type !== 'radio' || first(one) === one));
  return window.toolcribActions.length;
}"""
FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const is_marked = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  const is_shown = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  const over = document.elementFromPoint(box.left + box.width / 2, Math.min(box.top + box.height / 2, innerHeight - 1));
  return [window.toolcribActions.indexOf(one), is_marked, is_shown && (box.height > innerHeight || !over?.closest('header')
    || !!one.closest('header')), one.textContent.trim().slice(0, 40) || one.name || one.tagName];
}"""

# Maximum number of parts of a field that Tab reaches one after the other.
PARTS = 8


def card(page, tool_text):
    return page.locator("article", has_text=tool_text)


def clicks(report, window, home, run, server):
    page = window.page
    window.open("decisions")
    expect(page.get_by_role("link", name="Decisions")).to_contain_text("2")
    window.press(card(page, "plan.md").get_by_role("button", name="Allow once"))
    expect(page.locator(".verdict")).to_contain_text("is stored")
    ended = json.loads(run.until('"type":"tool_result"').string)
    report.case("a click lets a waiting run go on", ended["receipt"]["outcome"] == "ok" and run.end() == 0, ended)
    report.case("and its tool has done its work", not (home.folder / "desk/desk/plan.md").exists())
    window.press(card(page, "board.csv").get_by_role("button", name="Allow once"))
    expect(card(page, "board.csv").get_by_role("button", name="Allow once")).to_have_count(0)
    again = server.call("fs_rm", {"path": "board.csv"})
    report.case("a click lets the repeated call of an MCP client pass", again["result"]["isError"] is False, again)
    more = server.call("fs_rm", {"path": "jobs.md"})
    report.case("and no other call", more["result"]["isError"] is True, more)
    expect(card(page, "jobs.md")).to_be_visible()
    expect(page.get_by_role("link", name="Decisions")).to_contain_text("1 waiting")
    report.case("a call that begins to wait appears on the open page", True)


def waits(report, window, home, tools):
    """Allows a call of an MCP client that waits, for the session of the client."""
    page, server = window.page, Server(home, *tools, "--ask-tool=calculate", "--wait-approval=10m", client="patient")
    window.open("decisions")
    asked = server.request("tools/call", {"name": "calculate", "arguments": {"expression": "6 * 7"}})
    one = card(page, "6 * 7")
    expect(one).to_be_visible()
    one.locator("summary").click()
    window.press(one.get_by_role("button", name="Allow for the session"))
    answer = server.answer(asked)
    report.case("a click lets a waiting call of an MCP client go on", answer["result"]["isError"] is False, answer)
    again = server.call("calculate", {"expression": "7 * 8"})
    report.case("and its session covers the next one", again["result"]["isError"] is False, again)
    server.stop()


def denies(report, window, server):
    """Denies the call that waits, by a reason for the model and Enter."""
    page = window.page
    window.open("decisions")
    one = card(page, "jobs.md")
    # Enter presses the first button of a form, which must not be one that allows.
    one.locator("summary").click()
    reason = one.get_by_label("Reason")
    reason.fill("keep the <b>jobs</b>")
    server.call("fs_rm", {"path": "letter.md"})
    expect(card(page, "letter.md")).to_be_visible()
    kept = reason.input_value(), reason.evaluate("(field) => field === document.activeElement")
    report.case("a change of the page leaves a field in use as it is", kept == ("keep the <b>jobs</b>", True), kept)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    again = json.dumps(server.call("fs_rm", {"path": "jobs.md"}))
    report.case("a denial reaches the model with its reason", "keep the <b>jobs</b>" in again, again)


def tab_to(page, text, limit=200):
    """Presses Tab until an action with a text has the focus."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        if text in (page.evaluate("document.activeElement.textContent || ''") or ""):
            return True
    return False


def act(page, text):
    """Gives an action the focus by Tab, and presses Enter; again, if a live update of the page replaced it meanwhile."""
    for _ in range(3):
        if not tab_to(page, text):
            continue
        try:
            with page.expect_navigation(timeout=10_000):
                page.keyboard.press("Enter")
            return True
        except TimeoutError:
            pass
    return False


def by_keyboard(report, window, home, server):
    """Allows the call that waits and revokes an approval without a pointer, from the first page on."""
    page = window.page
    window.open("")
    page.keyboard.press("Tab")
    skips = page.evaluate("document.activeElement.textContent")
    report.case("the first Tab offers to skip to the content", "Skip" in skips, skips)
    found = act(page, "Decisions") and act(page, "Allow once")
    again = server.call("fs_rm", {"path": "letter.md"})
    report.case("the keyboard alone allows a call", found and again["result"]["isError"] is False, again)
    found = act(page, "Revoke")
    left = home.run("approvals", "list").stdout
    report.case("the keyboard alone takes back an approval", found and "get_time" not in left, left)


def walk(report, window, views):
    """Tab reaches every action of a view in its order, each with a visible focus."""
    page = window.page
    for view in views:
        window.open(view)
        number, wrong = page.evaluate(ACTIONS), []
        for at in range(number):
            # A field for a date has several parts.
            for _ in range(PARTS):
                page.keyboard.press("Tab")
                index, is_marked, is_shown, text = page.evaluate(FOCUSED)
                if index != at - 1:
                    break
            if index != at or not is_marked or not is_shown:
                wrong.append(f"{at}: reached {index} `{text}`, marked {is_marked}, in sight {is_shown}")
                break
        report.case(f"Tab reaches {number} actions of `{view or 'first'}` in order, in sight and marked", not wrong, wrong)


def read_only(report, browser_window):
    page = browser_window.page
    browser_window.open("decisions")
    forms, cards = page.locator("form[method=post]").count(), page.locator("article").count()
    report.case("the shared address shows calls that wait, and no way to decide", forms == 0 and cards > 0, (forms, cards))
