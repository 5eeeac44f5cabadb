"""What constrained replies may be: every legal one is read as what it means, no other is legal."""

import re
from itertools import chain, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.prompts import Constraint, Prompt
from stages.prompts.answer import AnswerQuestion, Passage
from stages.prompts.judging import PermissiveRating, StrictRating
from stages.prompts.readagent_look_up import (
    ParallelLookUp,
    SequentialLookUp,
    list_of,
    numbers,
    parse_page_list,
)
from stages.prompts.readagent_memory import BreakPoint, Labelled, PageGist
from tests.support.reading import FAMILIES, family

MOST_PAGES = 6  # that the methods of the papers look up at once
each_family = pytest.mark.parametrize("name", FAMILIES)


def form(name: str, prompt: type[Prompt[Any]]) -> str:
    written = family(name).form(prompt)
    assert written is not None
    return written


def gists(pages: range) -> tuple[Passage, ...]:
    return tuple(Passage("gist", number, "a gist") for number in pages)


def regex(constraint: Constraint | None) -> str:
    assert constraint is not None and constraint.regex and not constraint.choices
    return constraint.regex


@given(st.data(), st.integers(0, 3000), st.integers(0, 3000))
@settings(deadline=None)
def test_a_number_is_matched_if_it_is_in_the_range(data: st.DataObject, a: int, b: int) -> None:
    legal = range(min(a, b), max(a, b) + 1)
    beside = st.sampled_from([legal[0] - 1, legal[-1] + 1])
    number = data.draw(st.one_of(st.sampled_from(legal), beside, st.integers(0, 9999)))
    pattern = numbers(legal[0], legal[-1])
    assert bool(re.fullmatch(pattern, str(number))) == (number in legal)
    assert not re.fullmatch(pattern, f"0{number}")


def test_replies_are_free_where_there_is_nothing_to_enumerate() -> None:
    assert PageGist("A page.").legal("{}") is None
    assert AnswerQuestion((), "Who?", (), 30).legal("Answer: ({})") is None
    assert family("generic").form(PageGist) is None


@each_family
@pytest.mark.parametrize("first_page", [0, 1])
def test_every_list_of_pages_is_legal_and_read(name: str, first_page: int) -> None:
    written = form(name, ParallelLookUp)
    for num_pages, most in ((1, 2), (3, 4), (12, 2)):
        pages = range(first_page, first_page + num_pages)
        prompt = ParallelLookUp(gists(pages), "Who?", (), most)
        legal = re.compile(regex(prompt.legal(written)))
        for listed in chain.from_iterable(product(pages, repeat=n) for n in range(most + 1)):
            reply = written.replace("{}", ", ".join(map(str, listed)))
            assert legal.fullmatch(reply)
            assert family(name).read(prompt, reply, False) == listed
            assert parse_page_list(reply) == listed, "where it was cut off, too"


@each_family
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_what_a_list_may_be_is_read_as_legal_pages(name: str, data: st.DataObject) -> None:
    """The other way round: from the regex to replies, of long documents."""
    num_pages = data.draw(st.integers(1, 2000))
    most = data.draw(st.integers(1, MOST_PAGES))
    pages = range(first := data.draw(st.sampled_from([0, 1])), first + num_pages)
    prompt = ParallelLookUp(gists(pages), "Who?", (), most)
    legal = regex(family(name).constraint(prompt))
    read = family(name).read(prompt, data.draw(st.from_regex(legal, fullmatch=True)), False)
    assert read is not None
    assert len(read) <= most
    assert set(read) <= set(pages)


@pytest.mark.parametrize(
    "listed", ["3", "-1", "0, 1, 2", "0,1", "0 1", ", 1", "1, ", "00", " ", "0 to 2"]
)
def test_no_other_list_is_legal(listed: str) -> None:
    legal = regex(list_of("Page [{}]", range(3), 2))
    assert not re.fullmatch(legal, f"Page [{listed}]")
    assert not re.fullmatch(legal, "Page [1] to see")


def test_signs_in_a_form_stand_for_themselves() -> None:
    written = "a.b? (c|d) \\ ^e$ f* g+ {h} {} -/#\n"
    legal = regex(list_of(written, range(2), 1))
    assert re.fullmatch(legal, written.replace("{}", "1"))
    assert not re.fullmatch(legal, written.replace("{}", "1").replace("a.b", "acb"))


LABELS = [*range(1, 301), 999, 1000, 3000]
READ: list[tuple[Prompt[Any], list[object]]] = [  # what the legal choices are read as
    (BreakPoint("", tuple(Labelled("A paragraph.", label) for label in LABELS)), [*LABELS]),
    *(
        (SequentialLookUp(gists(pages), "Who?", (), (), ()), [*pages, "stop"])
        for pages in (range(110), range(1, 111), range(950, 1060))
    ),
    *(
        (AnswerQuestion((), "Who?", ("option",) * number, 30), [*range(number)])
        for number in range(1, 27)
    ),
    (StrictRating("Who?", "a", "b"), ["yes", "no"]),
    (PermissiveRating("Who?", "a", "b"), ["yes", "partially", "no"]),
]


@each_family
def test_every_legal_choice_is_read(name: str) -> None:
    for prompt, values in READ:
        legal = family(name).constraint(prompt)
        assert legal is not None and not legal.regex
        assert [family(name).read(prompt, reply, False) for reply in legal.choices] == values


@each_family
def test_the_longest_replies_fit_their_budgets(name: str) -> None:
    """A token is a byte at least, and the one that ends the reply comes last."""
    pages = ", ".join(["1999"] * MOST_PAGES)
    longest: tuple[tuple[type[Prompt[Any]], str], ...] = (
        (BreakPoint, "99999"),
        (ParallelLookUp, pages),
        (SequentialLookUp, "1999"),
        (AnswerQuestion, "Z"),
        (StrictRating, "YES"),
        (PermissiveRating, "Yes, partially"),
    )
    for prompt, filling in longest:
        reply = form(name, prompt).replace("{}", filling)
        assert len(reply.encode()) + 1 <= family(name).max_reply_tokens(prompt), prompt


@pytest.mark.vllm
@each_family
def test_xgrammar_takes_exactly_what_is_legal(name: str) -> None:
    import xgrammar  # comes with vLLM

    vocabulary = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    tokens = xgrammar.TokenizerInfo(
        vocabulary, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256]
    )
    compiler = xgrammar.GrammarCompiler(tokens)
    written = form(name, ParallelLookUp)
    grammar = xgrammar.Grammar.from_regex(regex(list_of(written, range(1, 1235), MOST_PAGES)))
    compiled = compiler.compile_grammar(grammar)

    def takes(listed: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        said = written.replace("{}", listed).encode()
        return all(matcher.accept_token(token) for token in (*said, 256))

    for listed in ("", "1", "9", "10", "999", "1000", "1234", "7, 1230, 7", "1, 2, 3, 4, 5, 6"):
        assert takes(listed), listed
    for listed in ("0", "01", "1235", "9999", "1,2", "1, ", " ", "1, 2, 3, 4, 5, 6, 7", "a"):
        assert not takes(listed), listed
