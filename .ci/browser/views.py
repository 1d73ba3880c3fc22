"""Every view, wide and narrow, light and dark: it fits, axe finds nothing serious, and a screenshot shows it."""

import re

from window import FRAME, shape

# A window on a desk and a phone, as widths with their heights.
SIZES = {1280: 800, 390: 844}
SCHEMES = ["light", "dark"]
ALL = [(width, scheme) for scheme in SCHEMES for width in SIZES]
# One of each, for views that are checked with other texts too.
HALF = [(1280, "light"), (390, "dark")]
# Widths at which nothing may scroll sideways.
FIT = [320, 390, 640, 961, 2000]
# Maximum height of a screenshot.
MAX_SHOT = 2600
# Maximum kinds of views, and maximum bytes of one with everything that it loads.
MAX_VIEWS = 60
MAX_WEIGHT = 300 << 10
AXE = """async () => {
  const found = await axe.run(document, { resultTypes: ['violations'] });
  return found.violations.map((one) => [one.impact, one.id, one.nodes.slice(0, 3).map((node) => node.target.join(' ') + ' '
    + node.failureSummary.replace(/\\s+/g, ' ')).join(' | ')]);
}"""
TOO_WIDE = """() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return [];
  return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > page.clientWidth + 1)
    .slice(0, 5).map((one) => `${one.tagName}.${one.className}: ${one.textContent.slice(0, 60)}`).concat('the page scrolls');
}"""
# Labels before values in narrow tables that are wider than their column: they would lie over the value.
COVERED = """() => [...document.querySelectorAll('td[data-label]')].filter((one) => {
    const style = getComputedStyle(one, '::before');
    if (one.offsetParent === null || getComputedStyle(one).display !== 'grid') return false;
    const words = document.createElement('canvas').getContext('2d');
    words.font = style.font;
    const wide = style.whiteSpace === 'nowrap' ? one.dataset.label : one.dataset.label.split(' ').reduce((a, b) => a.length < b.length ? b : a);
    return words.measureText(wide).width > parseFloat(style.width) + 1;
  }).slice(0, 5).map((one) => `label over its value: ${one.dataset.label}`)"""
# Forms in which Enter in a field would allow or run something: it presses the first button.
HASTY = """() => [...document.querySelectorAll('form[method=post]')]
  .filter((form) => form.querySelector('input:not([type=hidden]), select'))
  .map((form) => form.querySelector('button')).filter((button) => button?.matches('.allow:not([value=preview])'))
  .map((button) => `Enter presses ${button.textContent}`)"""


def names(views):
    """Names the views by their kinds, with a number for further ones of a kind."""
    seen = {}
    for view in views:
        kind = re.sub(r"[^a-z]+", "-", shape(view).replace("*", "one")).strip("-") if view else "first"
        seen[kind] = seen.get(kind, 0) + 1
        yield view, kind if seen[kind] == 1 else f"{kind}-{seen[kind]}"


def crawl(window, views):
    """Adds one view of each further kind that a page links to."""
    views, kinds, at = list(views), {shape(view) for view in views}, 0
    while at < len(views) and len(views) < MAX_VIEWS:
        window.open(views[at])
        for link in window.links():
            if shape(link) not in kinds:
                kinds.add(shape(link))
                views.append(link)
        at += 1
    window.faults()
    return views


def check(report, window, axe, folder, views, prefix="", variants=ALL):
    """Opens views, and checks each."""
    for view, name in names(views):
        status = window.open(view)
        requests, size = window.weight()
        report.figure(f"weight of {prefix + name} in {requests} requests", f"{size / 1024:.1f} KiB")
        report.case(f"{prefix + name}: answers {status}, with at most 300 KiB", status < 500 and size <= MAX_WEIGHT, size)
        look(report, window, axe, folder, prefix + name, variants)


def look(report, window, axe, folder, name, variants=ALL):
    """Checks the page that is open."""
    page = window.page
    page.evaluate(axe)
    wide, serious = [], []
    for width, scheme in variants:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": SIZES[width]})
        page.evaluate(FRAME)
        height = min(page.evaluate("document.documentElement.scrollHeight"), MAX_SHOT)
        page.screenshot(
            path=folder / f"{name}-{width}-{scheme}.png",
            full_page=True,
            clip={"x": 0, "y": 0, "width": width, "height": height},
        )
        serious += [f"{width} {scheme}: {found}" for found in page.evaluate(AXE) if found[0] in ("serious", "critical")]
    for width in FIT:
        page.set_viewport_size({"width": width, "height": 800})
        wide += [f"{width}: {found}" for found in page.evaluate(TOO_WIDE) + page.evaluate(COVERED)]
    faults = [*window.faults(), *page.evaluate(HASTY)]
    report.case(f"{name}: no error, and nothing from elsewhere", not faults, faults)
    report.case(f"{name}: nothing scrolls sideways at {FIT}", not wide, "\n".join(wide))
    report.case(f"{name}: axe finds nothing serious", not serious, "\n".join(map(str, serious)))
