"""`reply_format=constrained`: what stages ask for, what names steps, who can keep to it; and what
is found in replies where whole runs (tests/jobs/report/test_findings.py) find nothing."""

import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run, run_manifest
from pipeline.asking.reply_health import findings
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Constraint
from pipeline.core.rows import Question, UnitRows
from pipeline.core.settings import CONF
from pipeline.work.stage import Stage
from stages.index.paginate import PaginateByModel
from stages.judge.rate import RateAnswers
from stages.read.answer_kinds import AnswerClosedBook
from stages.retrieve.read_agent import ReadAgentP, ReadAgentS
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup
from stages.tables.pages import Gist, Page
from tests.support.reading import adding, always, book, document, in_turn, looked_up, question, run

PAGINATE = PaginateByModel(
    page_breaks=False, paragraphs="lines", min_words=20, max_words=40, tail_words=0,
    preceding_words=0, following="nothing", label_rule="within_limits",
)  # fmt: skip
LINES = UnitRows(document=document("one two three four five six seven eight nine ten\n" * 7))
BOOK = book([f"Page text {n}.\n" for n in range(12)], [f"gist {n}" for n in range(12)])
IN_TURN: dict[str, Any] = {
    "answer_each_look_up": False, "answer_words": 30, "answer_page_tags": True,
}  # fmt: skip
CLOSED = AnswerClosedBook(first_page=0, answer_words=30, answer_page_tags=True)
RATE = RateAnswers()
CHOICE = question(options=("a bat", "the wind", "a child"))


def of_book(of_question: Question | None = None, num_pages: int = 12) -> UnitRows:
    of_question = of_question or question()
    rows = replace(BOOK, questions=(of_question,))
    return adding(rows, {
        Lookup: [looked_up(question_id=of_question.question_id)],
        Answer: [Answer(document_id="d", question_id="q", reader="r", answer="A gust.")],
        Page: rows[Page][:num_pages], Gist: rows[Gist][:num_pages],
    })  # fmt: skip


def one_of(*replies: str) -> Constraint:
    return Constraint(choices=replies)


LEGAL: list[tuple[Stage, UnitRows, str, tuple[str, ...], list[Constraint | None]]] = [
    # Of 7 paragraphs of 10 words, 40 words a window and at least 20: labels after 2, 3, 4; then,
    # from paragraph 4 on, after 5, 6, 7.
    (PAGINATE, LINES, "qmsum", ("Label: <3>", "Label: <7>"),
     [one_of("Label: <2>", "Label: <3>", "Label: <4>"),
      one_of("Label: <5>", "Label: <6>", "Label: <7>")]),
    (ReadAgentP(max_pages=2, first_page=1), of_book(), "generic", ("I want to look up Page [3]",),
     [Constraint(
         regex=r"I want to look up Page \[(([1-9]|1[0-2])(, ([1-9]|1[0-2])){0,1})?\]")]),
    # The pages left, or to stop; page 9 is not there.
    (ReadAgentS(max_pages=4, first_page=1, **IN_TURN), of_book(num_pages=4), "generic",
     ("Page 2", "Page 9", "Page 1", "STOP"),
     [one_of(*(f"Page {n}" for n in left), "STOP")
      for left in ((1, 2, 3, 4), (1, 3, 4), (1, 3, 4), (3, 4))]),
    (ReadAgentS(max_pages=3, first_page=0, **IN_TURN), of_book(num_pages=1), "generic",
     ("Page 0", "STOP"), [one_of("Page 0", "STOP"), one_of("STOP")]),
    (CLOSED, of_book(CHOICE), "generic", ("Answer: (B)",),
     [one_of("Answer: (A)", "Answer: (B)", "Answer: (C)")]),
    (CLOSED, of_book(), "generic", ("The wind.",), [None]),
    (RATE, of_book(question(references=("the wind",))), "generic", ("No", "No"),
     [one_of("YES", "NO"), one_of("Yes", "Yes, partially", "No")]),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "rows", "prompts", "replies", "expected"), LEGAL)
def test_stages_ask_for_legal_replies_and_for_none_where_replies_are_free(
    stage: Stage, rows: UnitRows, prompts: str, replies: tuple[str, ...], expected: list[Any]
) -> None:
    constrained, free = in_turn(*replies), always(replies[-1])
    run(stage, rows, constrained, prompts, is_constrained=True)
    assert [request.constraint for request in constrained.requests] == expected
    run(stage, rows, free)
    assert {request.constraint for request in free.requests} == {None}


VLLM = ("engine=vllm", "engine.model=org/model")
METHODS = "methods=readagent_p,readagent_s"
FREE, CONSTRAINED = "reply_format=free", "reply_format=constrained"
LOADED = {"documents None", "questions None"}


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """A copy of qmsum's prompts beside generic's."""
    return Path(shutil.copytree(CONF / "prompts", tmp_path / "prompts")) / "qmsum"


def ids(family: Path, *words: str) -> dict[str, str]:
    """The step ids of a command, by stage and method."""
    steps = read_run([METHODS, f"family={family}", *words]).steps_with_engines
    return {f"{step.name} {step.method}": step.id for step, _ in steps}


def test_forms_name_the_steps_whose_replies_keep_to_them_or_are_shown(family: Path) -> None:
    """In conversations a reply is shown in its form, also where it was free."""
    commands = ((*VLLM, FREE), (*VLLM, FREE, "memory=read_once"), (*VLLM, CONSTRAINED))
    free, shown, constrained = (ids(family, *words) for words in commands)
    assert {key for key in free if free[key] == constrained[key]} == LOADED
    path = family / "family.yaml"
    text = path.read_text()
    path.write_text(text.replace('  break_point: "Label: <{}>"', '  break_point: "Label: {}"'))
    assert path.read_text() != text
    free_now, shown_now, constrained_now = (ids(family, *words) for words in commands)
    assert free_now == free
    for before, now in ((shown, shown_now), (constrained, constrained_now)):
        assert {key for key in now if now[key] == before[key]} == LOADED


def test_a_constrained_rater_leaves_what_a_free_reader_made(family: Path) -> None:
    rater = ("rater=vllm", "rater.model=org/model")
    free, constrained = ids(family, *rater, FREE), ids(family, *rater, CONSTRAINED)
    changed = {key.partition(" ")[0] for key in free if free[key] != constrained[key]}
    assert changed == {"rate"}
    report = run_manifest(read_run([*rater, CONSTRAINED]))["report"]
    assert report["reply_format"] == "free", "the foot speaks of the reader's"


def test_constrained_replies_need_an_engine_that_takes_constraints() -> None:
    with pytest.raises(UsageError, match="reply_format=constrained: engine=extractive"):
        read_run([CONSTRAINED])


SERVER = ("engine=openai", "engine.base_url=http://127.0.0.1:9/v1", "engine.model=m")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (VLLM, "constrained"), ((*SERVER, "engine.structured_outputs=vllm"), "constrained"),
        (SERVER, "free"), ((), "free"),  # the extractive engine
        ((*VLLM, FREE), "free"), ((*VLLM, CONSTRAINED), "constrained"),
        ((*VLLM, "experiment=memwalker_table2", "corpus.path=."), "free"),
        ((*VLLM, "experiment=readagent_table3", "corpus.path=."), "free"),
    ],
)  # fmt: skip
def test_replies_are_constrained_by_default_where_the_engine_can(
    words: tuple[str, ...], expected: str
) -> None:
    assert run_manifest(read_run(words))["report"]["reply_format"] == expected


ROW: dict[str, Any] = {
    "stage": "answer", "method": "bm25", "repeat": 0, "prompt": "answer", "replies": 100,
    "unread": 0, "illegal": 0, "truncated": 0, "commonest": "no", "commonest_share": 0.1,
    "example_share": 0.0, "choices": 0, "letters": None, "right_letters": None,
    "copied_share": None, "tiny_share": None,
}  # fmt: skip
LETTERS = {"choices": 10, "letters": {"A": 0.8, "B": 0.2}}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"prompt": "gist", "commonest_share": 0.71}, ["commonest"]),
        # Nineteen equal replies, and verdicts of three words, may be right.
        ({"prompt": "gist", "commonest_share": 1.0, "replies": 19}, []),
        ({"prompt": "starts_chapter", "commonest_share": 1.0}, []),
        ({"prompt": "rate_permissive", "commonest_share": 1.0}, []),
        # One of four letters is an example's by chance, one of many labels is not.
        ({"example_share": 0.44}, []),
        ({"example_share": 0.46}, ["example"]),
        ({"prompt": "break_point", "example_share": 0.21}, ["example"]),
        ({**LETTERS, "right_letters": {"A": 0.7}}, ["letters"]),
        ({**LETTERS, "right_letters": {"A": 0.75}}, []),
        ({**LETTERS, "choices": 9, "right_letters": {"B": 1.0}}, []),
        ({"prompt": None, "replies": 0, "choices": 10, "letters": {"A": 1.0}}, ["letters"]),
        ({"prompt": "of_a_plugin", "commonest_share": 0.71}, ["commonest"]),
    ],
)
def test_bounds(changes: dict[str, Any], names: list[str]) -> None:
    assert [*findings({**ROW, **changes}, may_constrain=False)] == names


def test_constrained_replies_are_advised_where_they_help() -> None:
    cases, row = product(("break_point", "extract_facts"), (True, False)), {**ROW, "unread": 90}
    lines = {
        (prompt, may_constrain): findings({**row, "prompt": prompt}, may_constrain)["unread"]
        for prompt, may_constrain in cases
    }
    advised = [case for case, line in lines.items() if "reply_format=constrained" in line]
    assert advised == [("break_point", True)]
