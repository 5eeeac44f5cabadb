"""Markdown of HTML, written by hand."""

import pytest

from stages.extract.html_markdown import LINK, LINK_END, markdown
from stages.extract.markdown_table import SpannedCells, markdown_table


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>The <i>Tower</i></h1><p>It\n  stood.<h6>Low<br>er</h6>",
         "# The Tower\n\nIt stood.\n\n###### Low er"),
        ("<p>a<br>b</p><div>c<div>d</div></div>", "a\nb\n\nc\n\nd"),
        ("<h2></h2><p>a</p>", "a"),
        ("<ul><li>a<li><p>b</p><p>c</p></ul>d", "- a\n- b\n  c\n\nd"),
        ("<ol start=3><li>a</li><li>b</li></ol>", "3. a\n4. b"),
        ("<ul><li>a<ol><li>b</li><li>c</li></ol>d</li><li>e</li></ul>",
         "- a\n  1. b\n  2. c\n  d\n- e"),
        ("<ul><li></li><li>a</li></ul>", "- a"),
        ("<pre>a\n  b</pre>", "a\nb"),
        ("<title>T</title><script>x</script><style>y</style>a<template>z</template>", "a"),
        ("<p>a</ul></table></td></li></h1>b", "a\n\nb"),  # what was never opened
        ("<svg/>a<br/>b<hr/>c", "a\nb\n\nc"),
        ("<p>a \x01\x02\x03b", "a b"),  # signs that stand for indents and links
    ],
)  # fmt: skip
def test_blocks(html: str, expected: str) -> None:
    assert markdown(html) == expected


def test_a_table_is_one_whatever_is_left_open() -> None:
    rows = "| a | b |\n| --- | --- |\n| c | d |"
    assert (
        markdown("<table><tr><th>a</th><th>b</th></tr><tr><td>c</td><td>d</td></tr></table>")
        == rows
    )
    assert markdown("x<table><thead><tr><td>a<td>b<tbody><tr><td>c<td>d") == f"x\n\n{rows}"
    assert markdown(
        "<table><caption>Cap</caption><tr><td><p>a</p></td><td>b<br>x|y</td></tr>"
        "<tr><td><ul><li>c</li><li>e</li></ul></td></tr></table>"
    ) == "Cap\n\n| a | b x\\|y |\n| --- | --- |\n| - c - e | |"  # fmt: skip


def test_cells_that_span_several_leave_the_others_empty() -> None:
    html = ("<table><tr><td colspan=2>a</td><td rowspan=2>b</td></tr>"
            "<tr><td>c</td><td>d</td></tr><tr><td>e<td>f<td>g</table>")  # fmt: skip
    assert markdown(html).splitlines()[2:] == ["| c | d | |", "| e | f | g |"]
    cells = SpannedCells()
    for row in (["a"], ["b", "c"]):
        cells.begin_row()
        for text in row:
            cells.add(text, num_columns=10**9 if text == "a" else 1, num_rows=2)
    assert [len(row) for row in cells.rows] == [100, 102]
    assert cells.rows[1][100:] == ["b", "c"]


@pytest.mark.parametrize(
    "html",
    [
        "<table><tr><td>a</td><td>b</td></tr></table>",  # a row
        "<table><tr><td>a</td></tr><tr><td>b</td></tr></table>",  # a column
        "<table><tr><td><h2>a</h2></td><td>x</td></tr><tr><td>b</td><td>y</td></tr></table>",
        f"<table><tr><td>a</td><td>{'x ' * 600}</td></tr><tr><td>b</td><td>y</td></tr></table>",
    ],
)
def test_a_table_for_the_layout_is_none(html: str) -> None:
    assert "|" not in markdown(html) and "\n\n" in markdown(html)


def test_a_table_within_a_cell_is_the_table() -> None:
    inner = "<table><tr><td>a<td>b<tr><td>c<td>d</table>"
    assert markdown(f"<table><tr><td>menu</td><td>{inner}</td></tr></table>") == (
        "menu\n\n| a | b |\n| --- | --- |\n| c | d |"
    )


def test_rows_of_several_lengths() -> None:
    assert markdown_table([["a"], ["b\nc", "d"]]) == "| a |  |\n| --- | --- |\n| b c | d |"


def test_elements_that_are_skipped_and_links() -> None:
    html = "<nav>x<nav>y</nav>z</nav><a>b</a><main><a>c</a></main>"
    assert markdown(html, lambda tag, attrs, inside: tag == "nav") == f"{LINK}b{LINK_END}\n\nc"
    assert markdown(html) == "x\n\ny\n\nz\n\nb\n\nc"
    found = markdown(f"{html}<nav>never closed", lambda tag, attrs, inside: tag == "nav")
    assert found == f"x\n\ny\n\nz\n\n{LINK}b{LINK_END}\n\nc\n\nnever closed"


def test_no_nesting_is_too_deep() -> None:
    depth = 20_000
    assert markdown("<div>" * depth + "a" + "</div>" * depth) == "a"
    assert markdown("<ul><li>" * 500 + "a").endswith("- a")
    assert markdown("<table><tr><td>" * 500 + "a") == "a"
