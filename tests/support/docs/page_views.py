"""Addresses within the page of a run, as tests of it open them."""

from urllib.parse import urlencode

from tests.support.docs.browser import Browser

READAGENT = "readagent_p(max_pages=2)"
BM25 = "bm25(top_k=1)"
METHODS = f"{READAGENT},{BM25},memwalker(segment_tokens=60,max_children=2),memorag(memory=gist_memory,memory_fit=split,retriever=bm25)"  # noqa: E501


def question(name: str, method: str, **others: str) -> str:
    """The view of a question by a method on the left, alone unless `others` say more."""
    return "#" + urlencode({"question": name, "method": method, "with": "none", **others})


def named(page: Browser, beginning: str) -> str:
    """The method whose name, as one types it, begins so; of the overview."""
    titles = page.run("return [...document.querySelectorAll('th a')].map((e) => e.title)")
    (found,) = {str(name) for name in titles if name.startswith(beginning)}
    return found
