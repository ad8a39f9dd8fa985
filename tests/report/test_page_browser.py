"""The page of `memmodel report` in a browser: keys, filters, switches, colours; nothing is fetched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memmodel.report.picture.draw import Drawing
from report.test_page import HOSTILE, hostile, sheet, whole

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2000 400" width="2000" height="400">'
    '<g data-relation="rf + sync"><path d="M0 0h9v9z"/></g>'
    '<g data-relation="fr" display="none"><path d="M0 5h9v9z"/></g></svg>'
)
DRAWING = Drawing(SVG, (("rf", "#d0312d", False), ("sync", "#178a3a", False), ("fr", "#e07b00", True)))


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    driver = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'memmodel[browser]'")
    if BROWSER is None:
        pytest.skip("needs an installed Chromium")
    with driver.sync_playwright() as one:
        found = one.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser, tmp_path: Path):
    """Opens a page from disk; at the end nothing was asked of the network and the console is empty."""
    trouble: list[str] = []
    contexts = []

    def show(text: str, **more: object):
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        contexts.append(browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **more}))
        page = contexts[-1].new_page()
        page.on("console", lambda one: trouble.append(one.text))
        page.on("pageerror", lambda one: trouble.append(str(one)))
        page.on("dialog", lambda one: trouble.append(f"dialog {one.message}"))
        page.on("request", lambda one: None if one.url.startswith("file:") else trouble.append(one.url))
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert trouble == []


def chosen(page) -> str:
    return page.locator("#sheet h2").inner_text()


def many(count: int) -> str:
    kinds = [("never", ()), ("sometimes", ("data race",)), ("vacuous", ("hang",))]
    sheets = [
        replace(sheet(f"test-{n}"), verdict=kinds[n % 3][0], findings=kinds[n % 3][1], picture=DRAWING)
        for n in range(count)
    ]
    return whole(*sheets)


def test_the_keyboard_is_enough(opened) -> None:
    page = opened(many(30))
    assert chosen(page) == "test-0"
    page.keyboard.press("/")
    page.keyboard.type("test-1")
    assert page.locator("#count").inner_text() == "11 of 30 shown"
    page.keyboard.press("ArrowDown")
    assert chosen(page) == "test-1"
    page.keyboard.press("ArrowDown")
    assert chosen(page) == "test-10" and page.evaluate("document.activeElement.dataset.number") == "10"
    assert page.locator('tr[aria-selected="true"]').count() == 1 and page.locator('tbody tr[tabindex="0"]').count() == 1
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("End")
    assert chosen(page) == "test-19"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.number") == "19"
    for _ in range(3):  # the sheet comes after the list
        page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('sheet').contains(document.activeElement)")


def test_menus_filter_by_what_is_found(opened) -> None:
    page = opened(many(30))
    page.get_by_label("Verdict").select_option("vacuous")
    assert page.locator("tbody tr:visible").count() == 10
    page.get_by_label("Finding").select_option("data race")
    assert page.locator("tbody tr:visible").count() == 0 and page.locator("#none").is_visible()
    page.get_by_label("Verdict").select_option("")
    assert page.locator("tbody tr:visible").count() == 10


def test_relations_are_switched_on_and_off(opened) -> None:
    page = opened(many(2))
    both, fr = page.locator('g[data-relation="rf + sync"]'), page.locator('g[data-relation="fr"]')
    assert both.is_visible() and not fr.is_visible()
    page.get_by_label("fr", exact=True).check()
    page.get_by_label("rf", exact=True).uncheck()
    assert both.is_visible() and fr.is_visible()
    page.get_by_label("sync", exact=True).uncheck()
    assert not both.is_visible()
    width = page.locator(".picture svg").bounding_box()["width"]
    page.get_by_text("Full size").click()
    assert page.locator(".picture svg").bounding_box()["width"] == 2000 > width


def test_light_and_dark(opened) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    page = opened(many(1), color_scheme="dark")
    dark = page.evaluate(back)
    page.get_by_role("button", name="Colours").click()
    assert page.locator("html").get_attribute("data-theme") == "light"
    light = page.evaluate(back)
    assert light != dark
    page.get_by_role("button", name="Colours").click()
    assert page.evaluate(back) == dark
    assert opened(many(1), color_scheme="light").evaluate(back) == light


def test_a_narrow_page_does_not_scroll_sideways(opened) -> None:
    page = opened(whole(hostile(), sheet(picture=DRAWING)), viewport={"width": 400, "height": 800})
    page.locator("tbody tr").nth(1).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_what_tests_are_called_runs_nothing(opened) -> None:
    page = opened(whole(hostile(), title=HOSTILE))
    assert "<script>alert(1)</script>" in chosen(page)
    assert page.locator("img").count() == 0 and page.locator("script").count() == 1


def test_a_thousand_tests_stay_usable(opened) -> None:
    page = opened(many(1000))
    assert page.locator("#sheet svg").count() > 0 and page.locator("body > :not(template) .picture").count() == 1
    seconds = page.evaluate(
        """() => { const begun = performance.now(); const search = document.getElementById("search");
        for (const word of ["9", "99", "999", ""]) {
          search.value = word; search.dispatchEvent(new Event("input")); document.body.offsetHeight;
        } return (performance.now() - begun) / 4000; }"""
    )
    assert seconds < 10, "a filter takes no longer than a person waits for, also on a slow machine"
