"""The tree viewer and the case studies in a real browser: a tree opens, the slider moves, the keys work, and text stays text."""

from __future__ import annotations

import pytest
from growing import SCRIPT
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

LEFT = "#panes article:first-child "


@pytest.fixture
def viewer(browser):
    """The page of trees, side by side, at its last round."""
    browser.open("trees.html")
    yield browser
    assert browser.errors() == []


def all_of(browser, selector: str) -> list:
    return browser.driver.find_elements(By.CSS_SELECTOR, selector)


def one(browser, selector: str):
    return browser.driver.find_element(By.CSS_SELECTOR, selector)


def chosen(browser) -> str:
    return one(browser, f"{LEFT}[data-part=details] h3").text


def test_a_tree_opens_and_a_node_says_what_it_is(viewer):
    """Every node of the grown tree is drawn, and a click shows its step, scores, advantages and order of creation."""
    counts = viewer.driver.execute_script("return site.data.forests.flatMap(f => Object.values(f.trees).map(t => t.nodes.length))")
    nodes = all_of(viewer, f"{LEFT}[role=treeitem]")
    assert len(nodes) in counts and len(nodes) > 8
    one(viewer, f"{LEFT}[data-node='2'] .body").click()
    assert chosen(viewer) == "Node 2"
    said = one(viewer, f"{LEFT}[data-part=details]").text
    for name in ("π(s)", "p̂(a*|s)", "r(s)", "J(s)", "A_GL", "λ A_IB", "GRPO's advantages", "made in", "entropy"):
        assert name in said
    assert one(viewer, f"{LEFT}[data-node='2']").get_attribute("aria-selected") == "true"


def test_text_of_artifacts_is_shown_and_never_run(viewer):
    """Every step with markup is in the page as text; no script of an artifact ran or became an element."""
    found = viewer.driver.execute_script(
        "return Object.values(site.data.forests[0].trees).flatMap(t => t.nodes.map(n => n.text)).filter(t => t.includes('<script>'))"
    )
    assert found
    texts = viewer.driver.execute_script(
        """const left = document.querySelector("#panes article");
        return [...left.querySelectorAll("[data-node]")].map((node) => {
          left.querySelector(`[data-node="${node.dataset.node}"]`).dispatchEvent(new MouseEvent("click", {bubbles: true}));
          return left.querySelector(".step").textContent;
        });"""
    )
    assert any(SCRIPT in text for text in texts) and any("$\\frac{1}{2}$" in text for text in texts)
    assert viewer.run("return window.hacked === undefined")
    assert not all_of(viewer, "#panes script, #panes b > b, .labels script")


def test_the_slider_replays_the_rounds(viewer):
    """One round less, fewer nodes; in each round of IBTree the picked candidate is the first of the ranking, and is ringed in the tree."""
    slider = one(viewer, "#round")
    sizes, last = [], int(slider.get_attribute("max"))
    assert slider.get_attribute("value") == str(last) and last > 1
    for number in range(last, -1, -1):
        sizes.append(len(all_of(viewer, f"{LEFT}[role=treeitem]")))
        assert one(viewer, "#round-text").text == (f"Round {number} of {last}" if number else "First rollouts")
        ringed = [node.get_attribute("data-node") for node in all_of(viewer, f"{LEFT}.node.picked")]
        if number:
            assert "picked" in one(viewer, f"{LEFT}.ranks tbody tr:first-child").get_attribute("class")
            assert len(all_of(viewer, f"{LEFT}.ranks tr.picked")) == len(ringed) == 1
            node = "the problem" if ringed == ["0"] else f"node {ringed[0]}"
            assert f"Round {number} picked {node}" in one(viewer, f"{LEFT}[data-part=why]").text
        slider.send_keys(Keys.ARROW_LEFT)
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0]
    one(viewer, "#on").click()
    assert one(viewer, "#round-text").text == f"Round 1 of {last}"


def test_the_keyboard_moves_along_the_tree(viewer):
    def press(key: str) -> tuple[str, str]:
        """Level and number of the node that has the focus afterwards; it is the chosen one."""
        viewer.driver.switch_to.active_element.send_keys(key)
        node = viewer.driver.switch_to.active_element
        number = node.get_attribute("data-node")
        assert chosen(viewer) == (f"Node {number}" if number != "0" else "The problem")
        return node.get_attribute("aria-level"), number

    viewer.run("document.querySelector(arguments[0]).focus()", f"{LEFT}[data-node='0']")
    assert press(Keys.ENTER) == ("1", "0")
    level, child = press(Keys.ARROW_RIGHT)
    assert level == "2"
    level, beside = press(Keys.ARROW_DOWN)
    assert level == "2" and beside != child
    assert press(Keys.ARROW_UP) == ("2", child)
    assert press(Keys.ARROW_LEFT) == ("1", "0")
    assert len(all_of(viewer, f"{LEFT}[role=treeitem][tabindex='0']")) == 1


def test_two_samplers_on_the_same_problem(viewer):
    """Both panes change problem together, each has its own sampler, and one of them can be put away."""
    problem = Select(one(viewer, "#problem"))
    assert len(problem.options) > 1
    problem.select_by_index(1)
    labels = [tree.get_attribute("aria-label") for tree in all_of(viewer, "svg.tree")]
    assert len(labels) == 2 and labels[0] != labels[1]
    sampler = Select(one(viewer, "#panes article:last-child [data-part=sampler]"))
    for option in [option.text for option in sampler.options]:
        sampler.select_by_visible_text(option)
        assert option in all_of(viewer, "svg.tree")[1].get_attribute("aria-label")
        assert all_of(viewer, "#panes article:last-child [role=treeitem]")
    one(viewer, "#compare").click()
    assert not one(viewer, "#panes article:last-child").is_displayed()


def test_colours_switch_between_score_and_density(viewer):
    fills = "return [...document.querySelectorAll('#panes article:first-child .body')].map(body => body.style.fill)"
    scores = viewer.driver.execute_script(fills)
    one(viewer, "#density").click()
    densities = viewer.driver.execute_script(fills)
    assert len(scores) == len(densities) and scores != densities
    assert "var(--seq-none)" in scores and "var(--seq-none)" not in densities  # a leaf has no IB-Score
    assert one(viewer, "#scale").text.split() == ["0.00", "1.00"]


def test_a_case_leads_to_its_tree(browser):
    browser.open("cases.html")
    assert browser.errors() == [] and all_of(browser, "svg.tree [role=treeitem]")
    figure = one(browser, "#deep .tree-figure")
    data = one(browser, "#deep svg.tree")
    round, node = data.get_attribute("data-round"), data.get_attribute("data-chosen")
    figure.find_element(By.TAG_NAME, "a").send_keys(Keys.ENTER)
    browser.wait("return location.pathname.endsWith('trees.html') && document.querySelector('[data-node]')")
    assert one(browser, "#round").get_attribute("value") == round
    assert one(browser, f"{LEFT}[data-node='{node}']").get_attribute("aria-selected") == "true"
    assert browser.errors() == [] and browser.driver.title.startswith("Trees")


@pytest.mark.parametrize("page", ["trees", "cases"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit(browser, page, dark, width):
    browser.open(f"{page}.html", width=width, dark=dark)
    browser.shot(f"{page}-{'dark' if dark else 'light'}-{width}")
    assert browser.errors() == [] and browser.overflow() <= 0
