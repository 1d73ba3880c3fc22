"""An audit log with a changed and with a removed record: the page of the verification shows each where it is."""

from pathlib import Path


def check(report, window, home, folder):
    page, file = window.page, home.logs()[-1]
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)

    def verdict():
        window.open("verify")
        return page.inner_text("main")

    text = verdict()
    report.case("a sound log is called so", "Every record is as it was written" in text, text)
    window.open("calls?tool=fs_*")
    with page.expect_download() as begun:
        page.get_by_role("link", name="Export").click()
    exported = Path(begun.value.path()).read_bytes().splitlines(keepends=True)
    wanted = [line for line in lines if b'"tool":"fs_' in line]
    report.case("the export of a filter holds its records as they are", exported == wanted, exported)
    changed = [line.replace(b'"outcome":"denied"', b'"outcome":"ok"', 1) for line in lines]
    at = next(at for at, line in enumerate(lines) if line != changed[at])
    file.write_bytes(b"".join([*lines[:at], changed[at], *lines[at + 1 :]]))
    text = verdict()
    report.case("a changed record is shown at its line", f"{file.name}:{at + 1}" in text and "does not match" in text, text)
    marked = page.locator("li[aria-current=true]").first
    is_marked = f"line {at + 1}" in marked.inner_text() and marked.locator("a").count() == 1
    report.case("with the records around it, and a link to it", is_marked, text)
    page.screenshot(path=folder / "verify-changed-1280-light.png", full_page=True)
    file.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    text = verdict()
    report.case("a removed record is shown where it was", f"{file.name}:3" in text and "record 3 is missing" in text, text)
    page.set_viewport_size({"width": 390, "height": 844})
    page.screenshot(path=folder / "verify-removed-390-light.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 800})
    file.write_bytes(whole)
    report.case("the log itself still verifies", "Every record is as it was written" in verdict())
