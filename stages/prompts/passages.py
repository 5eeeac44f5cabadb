"""Passages of a text that prompts show: gists, raw pages and runs of raw text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from stages.text.ranking import rank, terms


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of the reader's context: a page's gist, a raw page, or a run of raw text."""

    kind: Literal["gist", "page", "text"]
    page_number: int | None  # null for text, and where pages are shown without numbers
    text: str


def shown(passages: Sequence[Passage], with_numbers: bool) -> tuple[Passage, ...]:
    return tuple(p if with_numbers else replace(p, page_number=None) for p in passages)


def page_numbers(passages: Sequence[Passage]) -> list[int]:
    """The numbers of the pages shown, raw or as gists, in order."""
    return sorted(p.page_number for p in passages if p.page_number is not None)


def ranked_pages(passages: Sequence[Passage], query: str) -> list[int]:
    """Page numbers by BM25, best first."""
    numbered = [(p.page_number, p.text) for p in passages if p.page_number is not None]
    order = rank([text for _, text in numbered], query)
    return list(dict.fromkeys(numbered[place][0] for place in order))


def speaking_of(passages: Sequence[Passage], query: str) -> set[int]:
    """The numbers of the pages that share a term with `query`."""
    wanted = set(terms(query))
    found = (p.page_number for p in passages if wanted & set(terms(p.text)))
    return {number for number in found if number is not None}


def gist_numbers(passages: Sequence[Passage]) -> list[int]:
    """The numbers of the pages shown as gists, in order."""
    return page_numbers([passage for passage in passages if passage.kind == "gist"])


# Sample values that no template contains by chance; some have characters that break templates.
QUESTION = "Who rang the bell at {{ noon }}? <5>"
OPTIONS = ("the sexton & his wife", "nobody {% at all %}", "a 'child'", "Page [3]")
DATE = "2023/05/30 (Tue) 21:48 {{ noon }}"
MEMORY = (
    Passage("gist", 6100, "The village \\n wakes up."),
    Passage("page", 6101, "The bell rings.\n\n<b>Twelve</b> times.\n"),
    Passage("gist", 6102, "Nobody admits {# to #} it."),
)
TEXT = (Passage("text", None, "The bell rings."), Passage("text", None, "Nobody admits it."))
