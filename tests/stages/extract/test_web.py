"""Web pages without what is on every page of a site."""

import pytest

from stages.extract.epub import epub_text
from stages.extract.web import web_text
from tests.support.texts.documents import epub

PROSE = "<h1>The Tower</h1><p>The keeper climbed the tower at six.</p>"
TEXT = f"{PROSE}<ul><li>oil</li><li>bread</li></ul>"
KEPT = "# The Tower\n\nThe keeper climbed the tower at six.\n\n- oil\n- bread"
LINKS = '<ul><li><a href="/">Home</a></li><li><a href="/n">News</a></li></ul>'


def text(html: str) -> str:
    return web_text(html.encode()).text


@pytest.mark.parametrize(
    "beside",
    [
        f"<nav>{LINKS}</nav>", f"<header>Gazette {LINKS}</header>", "<footer>Imprint</footer>",
        f"<aside>Most read {LINKS}</aside>", "<div role='banner'>Gazette</div>",
        "<div class='site-header'>Gazette</div>", "<div id=header>Gazette</div>",
        "<div class='cookie-consent'>We use cookies</div>", "<p hidden>Draft</p>",
        "<div class='page-footer'><p>Imprint</p></div>", LINKS, "<form>Search</form>",
        "<p><a>Imprint</a> | <a>Privacy</a></p>", "<button>Accept</button>",
        "<div id='breadcrumbs'>Home &gt; Towers</div>",
    ],
)  # fmt: skip
def test_what_is_beside_the_text_is_left_out(beside: str) -> None:
    assert text(f"<body>{beside}<div>{TEXT}</div></body>") == KEPT
    assert text(f"<body><div>{TEXT}</div>{beside}</body>") == KEPT
    assert text(f"<body>{beside}<main>{TEXT}</main>{beside}</body>") == KEPT


@pytest.mark.parametrize(
    "html",
    [
        f"<article><header>{TEXT}</header></article>",
        f"<header id='title-block-header'>{TEXT}</header>",
        f"<body class='has-sidebar nav-open'>{TEXT}</body>",
        f"<main class='menu'>{TEXT}</main>",
        f"<div class='entry-header'>{TEXT}</div>",
        f"<section id='social-structure'>{TEXT}</section>",
        f"<main><div class='share'>{TEXT}</div></main>",
        f"{LINKS}{TEXT}".replace("<h1>", "<h1 id='navigation' class='nav'>"),
        f"<nav>{LINKS}{TEXT}",
        f"<nav>{LINKS}</nav>{TEXT}<p>\u00a9 2024 Gazette</p>",
    ],
)
def test_what_only_looks_so_is_kept(html: str) -> None:
    assert text(html) == KEPT


def test_links_in_the_text_are_text() -> None:
    assert text("<p>He read <a>a letter</a>, and <a>another</a>, and lit the lamp.</p>") == (
        "He read a letter, and another, and lit the lamp."
    )
    assert text(f"<article>{TEXT}{LINKS}</article>") == f"{KEPT}\n\n- Home\n- News"
    assert (
        text("<h2><a href='#top'>The Tower</a></h2><p>It stood.</p>") == "## The Tower\n\nIt stood."
    )
    notes = "<aside role='doc-footnote'>1 So it was.</aside>"
    assert text(f"{TEXT}{notes}") == f"{KEPT}\n\n1 So it was."


def test_a_page_of_links_is_read() -> None:
    assert text(f"<h1>Links</h1>{LINKS}<p><a>Towers of the coast, and of the inland</a></p>") == (
        "# Links\n\n- Home\n- News\n\nTowers of the coast, and of the inland"
    )


def test_an_epubs_page_of_contents_is_left_out() -> None:
    links = "".join(f'<p><a href="c{n}.xhtml">Chapter {n}</a></p>' for n in range(3))
    book = epub({"a.xhtml": f"<h1>Contents</h1>{links}", "b.xhtml": f"<nav>{links}</nav>{TEXT}",
                 "c.xhtml": "<h2><a>Notes</a></h2><p><a>1</a> So it was.</p>"})  # fmt: skip
    assert epub_text(book).text == f"{KEPT}\n\n## Notes\n\n1 So it was."
