"""Web pages cut at elements of a depth, against an XML parser's tree."""

import xml.etree.ElementTree as ET

import pytest

from pipeline.core.rows import UnitRows
from stages.index.element_pages import PaginateElements
from tests.support.reading import document, never, run
from tests.support.texts.web_pages import PAGES


def pages(text: str, depth: int) -> list[str]:
    made, calls = run(PaginateElements(depth=depth), UnitRows(document=document(text)), never())
    assert calls == () and {page.chosen_by for page in made} <= {"rule"}
    return [page.text or "" for page in made]


def at_depth(text: str, depth: int) -> list[str]:
    """The ids of the elements of a depth, by another parser: all is XML but <br>."""

    def below(element: ET.Element, level: int) -> list[ET.Element]:
        return (
            [element] if level == 0 else [e for child in element for e in below(child, level - 1)]
        )

    tree = ET.fromstring(text.replace("<br>", "<br/>"))
    return [element.get("backend_node_id", element.tag) for element in below(tree, depth)]


@pytest.mark.parametrize("text", PAGES)
@pytest.mark.parametrize("depth", range(1, 9))
def test_a_page_begins_at_each_element_of_the_depth(text: str, depth: int) -> None:
    made = pages(text, depth)
    wanted = at_depth(text, depth)
    assert "".join(made) == text and len(made) == max(1, len(wanted))
    for page, name in zip(made[1:], wanted[1:], strict=False):
        assert page.startswith("<") and name in page.split(">")[0]


def test_what_is_not_closed_is_closed_by_its_parent() -> None:
    """As browsers do; an end tag of nothing is nothing."""
    assert pages("<a><b><c></b></x><b>two</b></a>", 1) == ["<a><b><c></b></x>", "<b>two</b></a>"]
    assert pages("no tag at all", 3) == ["no tag at all"]
    assert pages("<a>\n<b>é</b>\n<b>2 < 3</b></a>", 1) == ["<a>\n<b>é</b>\n", "<b>2 < 3</b></a>"]


@pytest.mark.parametrize(
    "odd", ["<![1]>", "<![foo[bar]]>", "<![ >", "<![CDATA[x]]>", "<!x>", "<![", "<!"]
)
def test_declarations_of_no_kind_are_text(odd: str) -> None:
    assert "".join(pages(f"<a><b>{odd}</b><b>two</b></a>", 1)).endswith("<b>two</b></a>")
    assert pages(f"<a><b>one</b>{odd if odd.endswith('>') else ''}<b>two</b></a>", 1)[-1] == (
        "<b>two</b></a>"
    )
