"""The map in a browser: wheel, buttons and keys zoom and move it, the slider moves it through time, Tab finds names."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from mcp_memory.ui.times import day_text
from tests.browser.harness import Interface

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

BOX = ".map svg[viewBox]"


def width(page: Page) -> float:
    """Return how wide a part of the map is shown, once the next frame is drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return float(page.eval_on_selector(BOX, "svg => svg.viewBox.baseVal.width"))


def left(page: Page) -> float:
    width(page)
    return float(page.eval_on_selector(BOX, "svg => svg.viewBox.baseVal.x"))


def spots(page: Page) -> int:
    return page.locator(".spot:visible").count()


def test_wheel_buttons_and_keys_zoom_and_move_the_map(ui: Interface) -> None:
    with ui.page("/map") as page:
        page.wait_for_selector(".map[data-live]")
        whole = width(page)
        page.locator(".map .picture").hover()
        page.mouse.wheel(0, -300)
        page.wait_for_function(
            "whole => document.querySelector('.map svg[viewBox]').viewBox.baseVal.width < whole", arg=whole
        )
        page.locator(".map .picture").focus()
        page.keyboard.press("0")
        assert width(page) == whole
        page.keyboard.press("+")
        zoomed = width(page)
        assert zoomed < whole
        at = left(page)
        page.keyboard.press("ArrowRight")
        assert left(page) > at
        page.get_by_role("button", name="Zoom in").click()
        assert width(page) < zoomed
        page.get_by_role("button", name="Show all").click()
        assert width(page) == whole


def test_the_slider_shows_earlier_days_while_it_moves(ui: Interface) -> None:
    with ui.page("/map") as page:
        page.wait_for_selector(".map[data-live]")
        now = spots(page)
        page.locator(".map-time [type=range]").focus()
        page.keyboard.press("Home")
        assert 0 < spots(page) < now
        assert page.locator("#names tbody tr:visible").count() < now
        assert "?day=" in page.url
        page.wait_for_function("() => document.querySelector('#names h2').textContent.startsWith('Names on ')")
        day = date.fromisoformat(page.locator(".map-time [type=date]").input_value())
        assert page.locator(".lead").inner_text().startswith(f"On {day_text(day)}: ")
        page.keyboard.press("End")
        assert spots(page) == now


def test_a_date_leads_to_a_day_with_the_sizes_of_that_day(ui: Interface) -> None:
    def largest(page: Page) -> float:
        return float(
            page.evaluate(
                "Math.max(...[...document.querySelectorAll('.spot > circle')].map(one => one.r.baseVal.value))"
            )
        )

    with ui.page("/map") as page:
        page.wait_for_selector(".map[data-live]")
        width(page)
        now = largest(page)
        field = page.locator(".map-time [type=date]")
        field.fill(str(field.get_attribute("min")))
        page.wait_for_function("() => document.querySelector('#names h2').textContent.startsWith('Names on ')")
        width(page)
        assert largest(page) < now
        page.reload()
        page.wait_for_selector(".map[data-live]")
        assert field.input_value() == field.get_attribute("min")


def test_tab_goes_to_a_name_marks_its_neighbours_and_enter_opens_its_page(ui: Interface) -> None:
    with ui.page("/map") as page:
        page.wait_for_selector(".map[data-live]")
        page.locator(".map .picture").focus()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.matches('.spot.lit')")
        assert page.locator(".spot.lit").count() > 1
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.locator("main h1").count() == 1
        assert "/map" not in page.url
