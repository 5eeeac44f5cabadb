"""Passages of a text that prompts show: gists, raw pages, runs of raw text."""

import random
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
    """The passages with the numbers of their pages, or without."""
    return tuple(p if with_numbers else replace(p, page_number=None) for p in passages)


def page_numbers(passages: Sequence[Passage]) -> list[int]:
    """The numbers of the pages that are shown, raw or as gists, in order."""
    return sorted(p.page_number for p in passages if p.page_number is not None)


def ranked_pages(passages: Sequence[Passage], query: str) -> list[int]:
    """The page numbers by BM25 for `query`, best first."""
    numbered = [(p.page_number, p.text) for p in passages if p.page_number is not None]
    order = rank([text for _, text in numbered], query)
    return list(dict.fromkeys(numbered[place][0] for place in order))


def speaking_of(passages: Sequence[Passage], query: str) -> set[int]:
    """The numbers of the pages that share a term with `query`."""
    wanted = set(terms(query))
    found = (p.page_number for p in passages if wanted & set(terms(p.text)))
    return {number for number in found if number is not None}


def gist_numbers(passages: Sequence[Passage]) -> list[int]:
    """The numbers of the pages that are shown as gists, in order."""
    return page_numbers([passage for passage in passages if passage.kind == "gist"])


# Pages looked up at once by models that may have n: about n ** 0.65, in runs of seven books.
DRAWN_POWER = 0.65


def drawing(question: str, seed: int) -> random.Random:
    """Random numbers of a question: the same in every method that is asked it, and each process."""
    return random.Random(f"{seed} {question}")


def drawn_pages(passages: Sequence[Passage], draw: random.Random) -> list[int]:
    """The numbers of all pages that are shown, raw or as gists, in a random order."""
    numbers = sorted({*page_numbers(passages)})
    draw.shuffle(numbers)
    return numbers


# Sample values that no template holds by chance, some of them with what a template could trip over.
QUESTION = "Who rang the bell at {{ noon }}? <5>"
OPTIONS = ("the sexton & his wife", "nobody {% at all %}", "a 'child'", "Page [3]")
DATE = "2023/05/30 (Tue) 21:48 {{ noon }}"
MEMORY = (
    Passage("gist", 6100, "The village \\n wakes up."),
    Passage("page", 6101, "The bell rings.\n\n<b>Twelve</b> times.\n"),
    Passage("gist", 6102, "Nobody admits {# to #} it."),
)
TEXT = (Passage("text", None, "The bell rings."), Passage("text", None, "Nobody admits it."))
