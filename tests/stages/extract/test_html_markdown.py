"""Markdown of HTML, written by hand; the text of a browser, of what no one wrote right."""

import pytest

from stages.extract import html_markdown
from stages.extract.extracted import UnreadableError
from stages.extract.html_markdown import html_tree, without_link_marks
from stages.extract.web import mark_links


def markdown(html: str) -> str:
    return html_markdown.markdown(html_tree(html))


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
        ("<p>a</ul></table></td></li></h1>b", "ab"),  # what was never opened
        ("<svg/>a<br/>b<hr/>c", "a\nb\n\nc"),
        ("<p>a \x01\ufdd0\x03b", "a b"),  # characters of no text
        ("<head><title/><script src=a /></head><p>a<i/>b</p>", "ab"),  # XHTML
        ("<p>Wert&shy;papier, Mr.&nbsp;X<!-- c --><![CDATA[ & co]]>", "Wertpapier, Mr. X & co"),
        ("<p>a <b> b</b></p><ul><li>c</li></ul><ul><li>d</li></ul>", "a b\n\n- c\n\n- d"),
        ("<menu><li>a<p>b</menu><dl><dt>c<dd>d</dl>", "- a\n  b\n\nc\n\nd"),
    ],
)  # fmt: skip
def test_blocks(html: str, expected: str) -> None:
    assert markdown(html) == expected


@pytest.mark.parametrize(
    "text",
    ["1. He", "# He", "- he", "+ he", "> he", "2) he", "a *b* _c_ `d` [e](f) ~g~", "| a |", "***",
     "He read #", "\\(x\\_y\\) \\", "www.a.org :b: $c$", "a &amp;lt; &lt;b&gt; &amp;amp;"],
)  # fmt: skip
def test_text_that_looks_like_markdown_is_as_it_is(text: str) -> None:
    plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert markdown(f"<p>x<p>{text}<br>{text}") == f"x\n\n{plain}\n{plain}"


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
    ) == "Cap\n\n| a | b x\\|y |\n| --- | --- |\n| c e |  |"  # fmt: skip


def test_cells_that_span_several_leave_the_others_empty() -> None:
    html = ("<table><tr><td colspan=2>a</td><td rowspan=2>b</td></tr>"
            "<tr><td>c</td><td>d</td></tr><tr><td>e<td>f<td>g</table>")  # fmt: skip
    rows = [line.replace(" ", "") for line in markdown(html).splitlines()]
    assert rows == ["|a||b|", "|---|---|---|", "|c|d||", "|e|f|g|"]
    wide = f"<table><tr><td colspan={10**9} rowspan={10**9}>a<tr><td>b<td>c</table>"
    assert len(markdown(wide)) < 2000


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


def test_links_outside_of_the_main_text_are_marked() -> None:
    root = html_tree("<p>x <a> b</a> y</p><a><img></a><main><a>c</a></main>")
    mark_links(root)
    found = html_markdown.markdown(root)
    assert [found.count(mark) for mark in (html_markdown.LINK, html_markdown.LINK_END)] == [1, 1]
    assert without_link_marks(found) == "x b y\n\nc"


def test_what_is_nested_too_deep_is_refused_and_not_lost() -> None:
    assert markdown("<div>" * 900 + "a" + "<font>" * 900 + "b") == "ab"
    assert markdown("<ul><li>" * 300 + "a").endswith("- a")
    assert markdown("<table><tr><td>" * 200 + "a") == "a"
    for depth in (1100, 20_000):
        with pytest.raises(UnreadableError):
            markdown("<div>" * depth + "a" + "</div>" * depth)
