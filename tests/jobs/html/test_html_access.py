"""The page for everybody: axe-core finds nothing in any view, light or dark, wide or narrow."""

from importlib.resources import files
from typing import Any

import pytest

from tests.support.docs.browser import Browser
from tests.support.docs.page_views import BM25, READAGENT, named, question

pytestmark = pytest.mark.browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Browser) -> list[str]:
    """What axe-core finds in what is shown: a rule and an element in each line."""
    if not page.run("return 'axe' in window"):
        page.run((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found: dict[str, Any] = page.run(
        f"return await axe.run(document, {{runOnly: {RULES}, resultTypes: ['violations']}})"
    )
    return [
        f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]
    ]


def emulate(page: Browser, scheme: str) -> None:
    page.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(page: Browser, scheme: str, width: int) -> None:
    walk = named(page, "memwalker")
    emulate(page, scheme)
    page.resize(width, 800)
    both = {"with": walk}
    views = ["", "#view=questions&type=who", "#view=documents",
             "#document=village-3&evidence=v3-m7&at=first",
             *(question("v1-m7", READAGENT, **both, tab=tab)
               for tab in ("evidence", "memory", "walk", "calls", "verdicts")),
             question("v1-m3", BM25), "#question=nosuch"]  # fmt: skip
    found = {}
    for view in views:
        if view:
            page.go(view)
        page.run("document.querySelectorAll('main details').forEach((one) => one.open = true)")
        found[view] = violations(page)
    emulate(page, "light")
    assert found == {view: [] for view in views}
