"""Prompts of MemWalker (section 3 and appendix A.1) and of its recurrence baseline (section 4).

An action is a number: 0 and up enters that child of an inner node; -1 reverts to the parent; -2
answers.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar

from pipeline.core.prompts import Constraint
from pipeline.core.reply_forms import plain_text
from stages.prompts.answer import (
    DATE,
    OPTIONS,
    OUT_OF_RANGE,
    QUESTION,
    AnswerQuestion,
    Passage,
    free_answer,
    parse_option,
)
from stages.prompts.parsing import Filled, is_hedged, matching, settled
from stages.text.excerpts import best_sentences, gist
from stages.text.ranking import rank, terms

# Samples.
_SEGMENT = "The bell {{ rings }}.\n\n{% twice %} <3>"
_SUMMARIES = ("The village \\n wakes up.", "The {{ bell }} rings.", "Nobody {# to #} <3>")
_VISITED, _SUMMARY = "The village \\n {# wakes #} up.", "A village {# wakes #} up."
_LEAF_SHARE, _INNER_SHARE = 0.15, 0.3  # of the words shortened; the paper gives no length


@dataclass(frozen=True)
class SummarizeSegment(Filled[str]):
    """Summarize one segment (appendix A.1.1, leaves). The value is the summary, stripped. Asked by
    the stage `tree`."""

    name = "summarize"
    max_reply_tokens = 512
    is_whole = True
    assumed = f"{100 * _LEAF_SHARE:.0f}% of the segment"
    fills = ((_SEGMENT,),)
    segment: str

    def extractive(self) -> str:
        return gist(self.segment)

    def expected(self) -> str:
        return self.segment[: max(1, round(_LEAF_SHARE * len(self.segment)))]


@dataclass(frozen=True)
class CompressSummaries(Filled[str]):
    """Compress each of the consecutive summaries that are too long for their node (appendix A.1.1),
    to one text of all. Asked by the stage `tree`."""

    name = "compress"
    max_reply_tokens = 512
    is_whole = True
    assumed = f"{100 * _INNER_SHARE:.0f}% of the summaries"
    fills = (((_SEGMENT, "Nobody {# admits #} it."),),)
    summaries: tuple[str, ...]

    def extractive(self) -> str:
        return gist("\n\n".join(self.summaries)) or self.summaries[0]

    def expected(self) -> str:
        text = "\n\n".join(self.summaries)
        return text[: max(1, round(_INNER_SHARE * len(text)))]


REVERT, ANSWER = -1, -2
MAX_REPLIES = 3  # so many in a row without a legal action end the navigation (section 3)
_EXPECTED_REASON = f"Reasoning: {' '.join(['reason'] * 60)}\n"
_REASON_CHARS = 450  # of a constrained reply: at a token each the action still fits the budget
_NUMBER = r"(?P<action>[-−–]?\s?\d{1,9})(?![\d.]*\d)"
_NO_OTHER = (
    r"(?!\s*(?:/|,(?:\s*then\b)?|&|\bor\b|\band\b)\s*[-−–]?\d)"  # "Action: 0 / 1" repeats the form
)
_ACTION = (
    r"\baction\s*(?:[:=]|is\b)\s*(?:[\[(<{]\s*)?(?:(?:summary|passage|part|number)\s*)*"
    rf"{_NUMBER}{_NO_OTHER}"
)
_MINUS = str.maketrans("−–", "--")
_SIGNS = r"^\W{0,20}"  # bounded: each line of a reply of blank lines would be searched to its end
_LINE = re.compile(rf"{_SIGNS}{_ACTION}", re.IGNORECASE | re.MULTILINE)
_ANYWHERE = re.compile(_ACTION, re.IGNORECASE)
_ALONE = re.compile(rf"\A(?:\W{{0,9}}(?i:action)\s+)?\W*?{_NUMBER}\W*\Z")
_STATED = re.compile(rf"{_SIGNS}action\b", re.IGNORECASE | re.MULTILINE)
_NUMBER_AS_ANSWER = re.compile(  # that is a number: "Answer: 2", not "Answer: 2 years"
    r"^\W{0,9}(?:(?:so|the|my|final|correct)\s+){0,3}answer\b(?=[\s:=]*(?:is\b)?\W{0,5}\d+\W{0,5}$)",
    re.IGNORECASE | re.MULTILINE,
)
# An action; with -2 the option's index or "out_of_range", or the text of a free-form answer.
_LeafReply = tuple[int] | tuple[int, int | str]
_ANSWER_CHARS = 1000  # of a constrained free-form answer
_TO_ANSWER = re.compile(r"\baction\W{0,8}2\b", re.IGNORECASE)
_ANSWER = re.compile(r"\banswer[*_]*\s*[:=][*_]*\s*(?P<answer>\S.*)", re.IGNORECASE | re.DOTALL)
_LABEL = re.compile(r"\A\W*reasoning\W*:\W*", re.IGNORECASE)


def parse_action(reply: str, is_cut: bool) -> int | None:
    """The action: from a line `Action: 3`, else stated within a line, else a number that is the
    whole reply. None where two differ, or where the reply may have been cut within the number."""
    text = plain_text(reply)

    def actions(matches: Iterable[re.Match[str]]) -> list[int]:
        whole = (m["action"] for m in matches if not (is_cut and m.end("action") == len(text)))
        return [int(re.sub(r"\s", "", number).translate(_MINUS)) for number in whole]

    stated = [match for match in _ANYWHERE.finditer(text) if not is_hedged(text, match)]
    readings = (_LINE.finditer(text), [] if is_cut else stated, _ALONE.finditer(text))
    return settled(*map(actions, readings))


def reason_of(reply: str) -> str | None:
    """The reasoning before the action, without its label; None without any."""
    action = _STATED.search(reply)
    before = reply[: action.start()] if action else ""
    return _LABEL.sub("", before).strip() or None


def _legal_actions(form: str, actions: str, reasoning: bool) -> Constraint:
    """Replies in this form with one of the actions, a regex, after one line of free reasoning."""
    reason = f"Reasoning: [^\\n]{{1,{_REASON_CHARS}}}\\n" if reasoning else ""
    return Constraint(regex=f"{reason}{matching(form, f'({actions})')}")


@dataclass(frozen=True)
class Triage(Filled[int]):
    """Behind which summary is the answer (section 3)? The value is its number from 0, or -1 to
    revert; one that is not legal here is a value, too. Asked by the stage `navigate`."""

    name = "triage"
    max_reply_tokens = 512
    version = 1
    form = "Action: {}"
    form_values: ClassVar[Mapping[str, Any]] = {"0": 0, "1": 1, "2": 2, "-1": REVERT}
    assumed = "the child in the middle"
    fills = (
        (_SUMMARIES, QUESTION, True, ()),
        (_SUMMARIES, QUESTION, False, (0, 2)),
        (_SUMMARIES, QUESTION, True, (1,), True, DATE, 2748),
    )
    summaries: tuple[str, ...]  # of the children, in document order
    question: str
    reasoning: bool  # whether it is asked for reasons before the action (table 3)
    rejected: tuple[int, ...]  # numbers of summaries visited in vain
    may_revert: bool = False  # whether -1 is legal
    asked_at: str = ""  # the date of the question, where it has one
    num_invalid: int | None = None  # replies to this very question without a legal action

    def read(self, reply: str, is_cut: bool) -> int | None:
        if not re.search(r"\baction\b", reply, re.IGNORECASE):  # it may be given as the answer
            reply = _NUMBER_AS_ANSWER.sub("Action", reply)
        return parse_action(reply, is_cut)

    def is_legal(self, value: int) -> bool:
        return value in self.actions()

    def actions(self) -> list[int]:
        left = [number for number in range(len(self.summaries)) if number not in self.rejected]
        return [*left, REVERT] if self.may_revert else left

    def legal(self, form: str) -> Constraint:
        return _legal_actions(form, "|".join(map(str, self.actions())), self.reasoning)

    def extractive(self) -> str:
        best = next(n for n in rank(self.summaries, self.question) if n not in self.rejected)
        reason = f"Reasoning: Summary {best} shares most with the question.\n"
        return f"{reason if self.reasoning else ''}Action: {best}"

    def expected(self) -> str:
        left = [action for action in self.actions() if action != REVERT]
        return f"{_EXPECTED_REASON if self.reasoning else ''}Action: {left[len(left) // 2]}"


@dataclass(frozen=True)
class ReadLeaf(Filled[_LeafReply]):
    """Can the question be answered from this segment (section 3)? If so, the answer; an action that
    is not legal is a value, too. Asked by the stage `navigate`."""

    name = "read_leaf"
    max_reply_tokens = 512
    version = 1
    form = "Action: {}"
    form_values: ClassVar[Mapping[str, Any]] = {
        "-1": (REVERT,),
        "-2\nAnswer: (A)": (ANSWER, 0),
        "-2\nAnswer: (D)": (ANSWER, 3),
    }
    is_whole = True
    assumed = "the first segment read has the answer"
    fills = (
        (_SEGMENT, QUESTION, OPTIONS, True, None),
        (_SEGMENT, QUESTION, (), True, 84, _VISITED, DATE, 2748),
        (_SEGMENT, QUESTION, (), False, None, _VISITED),
    )
    segment: str
    question: str
    options: tuple[str, ...]
    reasoning: bool  # whether it is asked for reasons before the action (table 3)
    answer_words: int | None  # about how long a free-form answer should be; null: brief
    working_memory: str = ""  # summaries of nodes visited before
    asked_at: str = ""  # the date of the question, where it has one
    num_invalid: int | None = None  # replies to this very question without a legal action

    def read(self, reply: str, is_cut: bool) -> _LeafReply | None:
        """None where no action is stated, and for -2 without a readable answer."""
        action = parse_action(reply, is_cut)
        if action is None or action != ANSWER:
            return None if action is None else (action,)
        text = answer_text(reply)
        if not self.options:
            return (ANSWER, text) if text else None
        option = parse_option(f"Answer: {text}", len(self.options)) if text else None
        return None if option is None else (ANSWER, option)

    def is_legal(self, value: _LeafReply) -> bool:
        return value[0] in (REVERT, ANSWER) and (not self.options or value[-1] != OUT_OF_RANGE)

    def legal(self, form: str) -> Constraint:
        letters = "|".join(ascii_uppercase[: len(self.options)])
        answer = f"\\(({letters})\\)" if self.options else f"[^\\n]{{1,{_ANSWER_CHARS}}}"
        return _legal_actions(form, f"{REVERT}|{ANSWER}\\nAnswer: {answer}", self.reasoning)

    def _answer(self) -> AnswerQuestion:
        passage = Passage("page", None, self.segment)
        return AnswerQuestion((passage,), self.question, self.options, self.answer_words)

    def extractive(self) -> str:
        shared = set(terms(self.segment)) & set(terms(self.question))
        says = f"The text {'speaks' if shared else 'does not speak'} of what is asked."
        reason = f"Reasoning: {says}\n" if self.reasoning else ""
        if not shared:
            return f"{reason}Action: {REVERT}"
        answer = self._answer().extractive().removeprefix("Answer: ")
        return f"{reason}Action: {ANSWER}\nAnswer: {answer}"

    def expected(self) -> str:
        answer = self._answer().expected().removeprefix("Answer: ")
        return f"{_EXPECTED_REASON if self.reasoning else ''}Action: {ANSWER}\nAnswer: {answer}"


def answer_text(reply: str) -> str:
    """The text after `Answer:` that follows the action -2; "" without one."""
    action = _TO_ANSWER.search(reply)
    answer = _ANSWER.search(reply, action.end() if action else 0)
    return free_answer(answer["answer"].strip().strip("#")) if answer else ""


@dataclass(frozen=True)
class UpdateSummary(Filled[str]):
    """Rewrite the summary of the text before `segment` ("" for none) to include what the segment
    says about the question, or for a question "" about anything. Asked by the stage
    `update_summary`."""

    name = "update_summary"
    max_reply_tokens = 500
    fills = (
        (_SEGMENT, _SUMMARY, QUESTION, (), 8104),
        (_SEGMENT, "", QUESTION, OPTIONS, 8104),
        (_SEGMENT, _SUMMARY, QUESTION, OPTIONS, 8104, DATE),
        (_SEGMENT, _SUMMARY, "", (), 8104),
    )
    is_whole = True
    assumed = "as many words as are asked for"
    segment: str
    summary: str
    question: str
    options: tuple[str, ...]
    max_words: int
    asked_at: str = ""  # the date of the question, where it has one

    def extractive(self) -> str:
        """The best sentences of both for the question, else the old summary, else a gist."""
        if not self.question:
            return gist(f"{self.summary} {self.segment}") or self.summary
        query = " ".join([self.question, *self.options])
        words = max(1, 9 * self.max_words // 10)  # what it takes may be a tenth longer
        best = best_sentences([self.summary, self.segment], query, words)
        return best or self.summary or gist(self.segment)

    def expected(self) -> str:
        words = f"{self.summary} {self.segment}".split()
        return " ".join(words[: max(1, self.max_words)])
