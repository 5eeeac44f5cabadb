"""What the extractive engine reaches on QMSum val: floors for recall, gists and answers.

The meetings are read here anew, apart from the project's own loader and pages.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from rouge_score.rouge_scorer import RougeScorer

from stages.prompts.answer_question import AnswerQuestion
from stages.prompts.choose_pages import ParallelLookUp, parse_pages
from stages.prompts.pages_and_gists import ShortenPage
from stages.prompts.passages import Passage
from stages.text.ranking import rank
from stages.text.words import sentence_spans
from tests.support.command import NEEDS_WHOLE, WHOLE_QMSUM

pytestmark = NEEDS_WHOLE
PAGE_WORDS = 430
TAG = re.compile(r"\{[^{}]*\}")
Span = tuple[int, int]  # characters, half-open


@dataclass(frozen=True)
class Query:
    question: str
    answer: str
    gold: tuple[Span, ...]


@dataclass(frozen=True)
class Meeting:
    text: str
    page_spans: tuple[Span, ...]
    pages: tuple[str, ...]
    queries: tuple[Query, ...]


@cache
def meetings() -> tuple[Meeting, ...]:
    """All meetings in file order. A missing file is an error."""
    with WHOLE_QMSUM.open(encoding="utf-8") as lines:
        return tuple(_meeting(json.loads(line)) for line in lines)


def recall(gold: tuple[Span, ...], read: list[Span]) -> float:
    """The share of gold characters in the spans read."""
    wanted = {char for start, end in gold for char in range(start, end)}
    return len(wanted & {char for start, end in read for char in range(start, end)}) / len(wanted)


def _meeting(row: dict[str, Any]) -> Meeting:
    turns = [f"{turn['speaker']}: {turn['content']}" for turn in row["meeting_transcripts"]]
    text = "\n".join(turns)
    starts = [0]
    for turn in turns:
        starts.append(starts[-1] + len(turn) + 1)
    spans = tuple((starts[first], min(starts[last], len(text))) for first, last in _uniform(turns))
    pages = tuple(text[start:end] for start, end in spans)
    return Meeting(text, spans, pages, tuple(_queries(row, turns, starts)))


def _uniform(turns: list[str]) -> Iterator[tuple[int, int]]:
    """Runs of turns that end nearest to PAGE_WORDS words, the earlier end where two are."""
    first = 0
    while first < len(turns):
        words, ends = 0, []
        for last in range(first, len(turns)):
            words += len(turns[last].split())
            ends.append((abs(words - PAGE_WORDS), last + 1))
            if words > PAGE_WORDS:
                break
        end = min(ends)[1]
        yield first, end
        first = end


def _queries(row: dict[str, Any], turns: list[str], starts: list[int]) -> Iterator[Query]:
    for query in row["general_query_list"]:
        yield Query(query["query"], query["answer"], ())
    for query in row["specific_query_list"]:
        ranges = [(int(first), int(last)) for first, last in query["relevant_text_span"]]
        gold = tuple((starts[first], starts[last] + len(turns[last])) for first, last in ranges)
        yield Query(query["query"], query["answer"], gold)


@cache
def gists(meeting: Meeting) -> tuple[str, ...]:
    return tuple(ShortenPage(page).extractive() for page in meeting.pages)


def mean_recall(order: Callable[[Meeting, str], Sequence[int]], top_k: int) -> float:
    """Percent of the gold characters in the first `top_k` pages, mean over questions with gold."""
    shares = [
        recall(query.gold, [meeting.page_spans[i] for i in order(meeting, query.question)[:top_k]])
        for meeting in meetings()
        for query in meeting.queries
        if query.gold
    ]
    assert len(shares) == 237
    return 100 * sum(shares) / len(shares)


def by_pages(meeting: Meeting, question: str) -> Sequence[int]:
    return rank(meeting.pages, question)


def by_gists(meeting: Meeting, question: str) -> Sequence[int]:
    passages = tuple(Passage("gist", i, text) for i, text in enumerate(gists(meeting)))
    return parse_pages(ParallelLookUp(passages, question, (), 6).extractive()) or ()


@pytest.mark.parametrize(("top_k", "floor"), [(1, 22.5), (3, 45), (6, 62)])
def test_recall_of_bm25_over_pages(top_k: int, floor: float) -> None:
    assert mean_recall(by_pages, top_k) >= floor


@pytest.mark.slow
@pytest.mark.parametrize(("top_k", "floor"), [(1, 19), (3, 41), (6, 57)])
def test_recall_of_the_look_up_over_gists(top_k: int, floor: float) -> None:
    assert mean_recall(by_gists, top_k) >= floor


def test_gists_have_40_to_110_words_of_whole_sentences_and_leave_out_80_percent() -> None:
    num_pages = from_both_halves = 0
    for meeting in meetings():
        for page, gist in zip(meeting.pages, gists(meeting), strict=True):
            if len(page.split()) < 200:
                continue
            num_pages += 1
            clean = " ".join(TAG.sub(" ", page).split())
            assert 40 <= len(gist.split()) <= 110
            assert "{" not in gist and "  " not in gist
            assert not clean.startswith(gist)
            from_both_halves += len(halves_taken(page, gist)) == 2
    assert from_both_halves >= 0.9 * num_pages > 0
    page_words = sum(len(page.split()) for meeting in meetings() for page in meeting.pages)
    gist_words = sum(len(gist.split()) for meeting in meetings() for gist in gists(meeting))
    assert 80 <= 100 * (1 - gist_words / page_words) <= 88


def halves_taken(page: str, gist: str) -> set[bool]:
    """Whether sentences of the gist, whole and in order, start in the page's second half."""
    # What of the gist is left after some sentences: one may begin like another, so try both.
    left: dict[str, set[bool]] = {gist: set()}
    for start, end in sentence_spans(page):
        sentence = " ".join(TAG.sub(" ", page[start:end]).split())
        for rest, halves in list(left.items()):
            if sentence and f"{rest} ".startswith(f"{sentence} "):
                left[rest[len(sentence) :].strip()] = halves | {start > len(page) / 2}
    assert "" in left, "more than whole sentences"
    return left[""]


@pytest.mark.slow
def test_answers_from_the_three_best_pages() -> None:
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    words: list[int] = []
    scores: list[tuple[float, float, float]] = []
    for meeting in meetings():
        for query in meeting.queries:
            best = sorted(rank(meeting.pages, query.question)[:3])
            passages = tuple(Passage("page", i, meeting.pages[i]) for i in best)
            answer = AnswerQuestion(passages, query.question, (), 72).extractive()
            made = scorer.score(query.answer, answer)
            words.append(len(answer.split()))
            scores.append(tuple(made[kind].fmeasure for kind in scorer.rouge_types))
    means = [100 * sum(column) / len(scores) for column in zip(*scores, strict=True)]
    assert 60 <= sum(words) / len(words) <= 80
    assert means[0] >= 23 and means[1] >= 4.5 and means[2] >= 14.5, means
