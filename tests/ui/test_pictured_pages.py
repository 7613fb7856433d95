"""README's pictures and the pages that they show."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from scripts.pictured_pages import FOLDER, PAGES, STYLE, digests, noted_digests, pages_of_two_weeks

REPOSITORY = FOLDER.parent.parent


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the days of the pictures are those of UTC")
def test_the_pages_are_those_in_the_pictures(home: Path) -> None:
    shown, noted = digests(pages_of_two_weeks(home)), noted_digests()
    changed = [name for name in shown if shown[name] != noted.get(name)]
    assert not changed, (
        f"Changed since the pictures were taken: {', '.join(changed)}. Run: python -m scripts.ui_pictures"
    )


def test_every_picture_is_of_a_page_and_is_shown_in_the_readme() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert {picture.stem for picture in FOLDER.glob("*.png")} == PAGES.keys()
    assert noted_digests().keys() == {*PAGES, STYLE}
    assert [name for name in PAGES if f"docs/pictures/{name}.png" not in readme] == []
