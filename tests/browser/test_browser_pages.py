"""Every page in a real browser: it loads without errors, works, and fits a phone, in light and in dark."""

from __future__ import annotations

import pytest
from artifacts import HOSTILE, small

from ibtpo.site.build import PAGES

NAMES = [page.name for page in PAGES]
TITLES = [small().methods[name].title for name in ("grpo", "ibtpo")]
DRAWN = "return [...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('svg.main-svg'))"
SCROLL = "scrollTo(0, document.body.scrollHeight); return true"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_loads_without_errors_and_fits(browser, name, width, dark):
    browser.open(f"{name}.html", width=width, dark=dark)
    browser.shot(f"{name}-{width}-{'dark' if dark else 'light'}")
    assert browser.errors() == []
    assert browser.overflow() <= 0
    assert browser.texts("nav a[aria-current]") == [page.title for page in PAGES if page.name == name]


@pytest.mark.parametrize("name", NAMES)
def test_text_of_artifacts_never_runs(browser, name):
    browser.open(f"{name}.html")
    browser.run(SCROLL)
    assert browser.run("return window.hacked === undefined && !document.querySelector('img[src=x]')")


def test_hostile_titles_are_read_as_they_are_written(browser):
    browser.open("tables.html")
    rows = browser.texts("#table1 tbody th")
    assert all(title in rows for title in TITLES) and all(any(text in title for title in TITLES) for text in HOSTILE)
    browser.open("figures.html")
    assert browser.texts("#figure5 .keys button") == TITLES
    browser.open("runs.html")
    assert browser.texts(".choice label") == TITLES


FIRST = "document.querySelector('#table1 .sortable')"


def test_a_heading_sorts_its_column_and_turns_it_round(browser):
    browser.open("tables.html")
    column = f"return [...{FIRST}.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.sort))"
    before = browser.run(column)
    for order, reverse in (("descending", True), ("ascending", False)):
        browser.run(f"{FIRST}.tHead.rows[0].cells[1].querySelector('button').click()")
        assert browser.run(column) == sorted(before, reverse=reverse)
        assert browser.run(f"return [...{FIRST}.tHead.rows[0].cells].map((head) => head.ariaSort)")[:3] == ["none", order, "none"]
    assert browser.errors() == []


def test_rows_without_a_value_stay_last(browser):
    browser.open("tables.html")
    for _ in range(2):
        browser.run(f"{FIRST}.tHead.rows[0].lastElementChild.querySelector('button').click()")
        empty = browser.run(f"return [...{FIRST}.tBodies[0].rows].map((row) => row.lastElementChild.className === 'empty')")
        assert empty == [False] * (len(empty) - 1) + [True]  # p of the reference method


def test_figures_render_and_a_legend_hides_a_line(browser):
    browser.open("figures.html")
    for number in range(browser.run("return document.querySelectorAll('.plot').length")):
        browser.run("document.querySelectorAll('.plot')[arguments[0]].scrollIntoView({behavior: 'instant'})", number)
    browser.wait(DRAWN)
    lines = "return document.querySelectorAll('#figure5 .plot .scatterlayer .js-line').length"
    shown = browser.run(lines)
    assert shown >= 2 * browser.run("return document.querySelectorAll('#figure5 .plot').length")
    browser.click("#figure5 .keys button")
    browser.wait(f"return ({lines.removeprefix('return ')}) < {shown}")
    assert browser.errors() == []


def test_runs_are_chosen_one_by_one(browser):
    browser.open("runs.html")
    browser.wait(DRAWN.replace("every", "some"))
    count = "return document.querySelector('.plot').querySelectorAll('.scatterlayer .js-line').length"
    browser.run("document.getElementById('lines').value = 'seeds'; document.getElementById('controls').dispatchEvent(new Event('change'))")
    browser.wait(f"return ({count.removeprefix('return ')}) === 4")
    browser.click(".seed")
    browser.wait(f"return ({count.removeprefix('return ')}) === 3")
    browser.click("#none")
    browser.wait(f"return ({count.removeprefix('return ')}) === 0")
    for axis in ("tokens", "seconds", "step"):
        browser.run("document.getElementById('axis').value = arguments[0]; document.getElementById('all').click()", axis)
        browser.wait(f"return ({count.removeprefix('return ')}) === 4")
    assert browser.errors() == []


def test_the_theme_is_switched_and_kept(browser):
    paper = "return getComputedStyle(document.body).backgroundColor"
    browser.open("index.html")
    light = browser.run(paper)
    browser.click("#theme")
    dark = browser.run(paper)
    browser.open("tables.html")
    kept = browser.run(paper)
    browser.run("localStorage.clear()")
    browser.open("tables.html", dark=True)
    assert light != dark == kept == browser.run(paper)


def test_every_table_is_in_print(browser):
    """Paper: nothing is cut off by a scroll bar, and controls are left out."""
    browser.open("tables.html")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        styles = "return [...document.querySelectorAll(arguments[0])].map((one) => getComputedStyle(one)[arguments[1]])"
        assert set(browser.run(styles, ".scroll", "overflowX")) == {"visible"}
        assert set(browser.run(styles, ".no-print", "display")) == {"none"}
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
