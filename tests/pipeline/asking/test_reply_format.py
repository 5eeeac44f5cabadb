"""`reply_format=constrained`: what stages ask for, what names steps, who can keep to it."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run, run_manifest
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


def list_of(legal: str) -> Constraint:
    return Constraint(regex=rf"I want to look up Page \[{legal}\]")


LOOK_UP = "I want to look up Page [3]"
LEGAL: list[tuple[Stage, UnitRows, str, tuple[str, ...], list[Constraint | None]]] = [
    # Of 7 paragraphs of 10 words, 40 words a window and at least 20: labels after 2, 3, 4; then,
    # from paragraph 4 on, after 5, 6, 7.
    (PAGINATE, LINES, "qmsum", ("Label: <3>", "Label: <7>"),
     [one_of("Label: <2>", "Label: <3>", "Label: <4>"),
      one_of("Label: <5>", "Label: <6>", "Label: <7>")]),
    (ReadAgentP(max_pages=3, first_page=0), of_book(), "generic", (LOOK_UP,),
     [list_of(r"(([0-9]|1[0-1])(, ([0-9]|1[0-1])){0,2})?")]),
    (ReadAgentP(max_pages=2, first_page=1), of_book(), "generic", (LOOK_UP,),
     [list_of(r"(([1-9]|1[0-2])(, ([1-9]|1[0-2])){0,1})?")]),
    (ReadAgentP(max_pages=1, first_page=0), of_book(), "generic", (LOOK_UP,),
     [list_of(r"(([0-9]|1[0-1]))?")]),
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
    stage: Stage,
    rows: UnitRows,
    prompts: str,
    replies: tuple[str, ...],
    expected: list[Constraint | None],
) -> None:
    constrained, free = in_turn(*replies), always(replies[-1])
    run(stage, rows, constrained, prompts, is_constrained=True)
    assert [request.constraint for request in constrained.requests] == expected
    run(stage, rows, free)
    assert {request.constraint for request in free.requests} == {None}


VLLM = ("engine=vllm", "engine.model=org/model")
METHODS = "methods=readagent_p,readagent_s"
FREE, CONSTRAINED = "reply_format=free", "reply_format=constrained"


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """A copy of qmsum's prompts beside generic's."""
    return Path(shutil.copytree(CONF / "prompts", tmp_path / "prompts")) / "qmsum"


def other_form(family: Path) -> None:
    path = family / "family.yaml"
    text = path.read_text()
    before, other = '  break_point: "Label: <{}>"', '  break_point: "Label: {}"'
    assert text.count(before) == 1
    path.write_text(text.replace(before, other))


def ids(family: Path, *words: str) -> dict[str, str]:
    """The step ids of a command, by stage and method."""
    steps = read_run([METHODS, f"family={family}", *words]).steps_with_engines
    return {f"{step.name} {step.method}": step.id for step, _ in steps}


def test_forms_name_the_steps_whose_replies_keep_to_them(family: Path) -> None:
    free, constrained = ids(family, *VLLM, FREE), ids(family, *VLLM, CONSTRAINED)
    loaded = {"documents None", "questions None"}
    assert {key for key in free if free[key] == constrained[key]} == loaded
    other_form(family)
    assert ids(family, *VLLM, FREE) == free
    other = ids(family, *VLLM, CONSTRAINED)
    assert {key for key in other if other[key] == constrained[key]} == loaded


def test_forms_name_the_steps_whose_prompts_show_replies(family: Path) -> None:
    """In conversations a reply is shown in its form, also where it was free."""
    words = (*VLLM, FREE)
    before, before_alone = ids(family, *words, "memory=read_once"), ids(family, *words)
    other_form(family)
    after = ids(family, *words, "memory=read_once")
    assert {key for key in after if after[key] == before[key]} == {
        "documents None", "questions None",
    }  # fmt: skip
    assert ids(family, *words) == before_alone


def test_a_constrained_rater_leaves_what_a_free_reader_made(family: Path) -> None:
    rater = ("rater=vllm", "rater.model=org/model")
    free, constrained = ids(family, *rater, FREE), ids(family, *rater, CONSTRAINED)
    changed = {key.partition(" ")[0] for key in free if free[key] != constrained[key]}
    assert changed == {"rate"}
    resolved = read_run([*rater, CONSTRAINED])
    assert run_manifest(resolved)["report"]["reply_format"] == "free", (
        "the foot speaks of the reader's"
    )


def test_constrained_replies_need_an_engine_that_takes_constraints() -> None:
    with pytest.raises(UsageError, match="reply_format=constrained: engine=extractive"):
        read_run([CONSTRAINED])


SERVER = ("engine=openai", "engine.base_url=http://127.0.0.1:9/v1", "engine.model=m")
AUTO = [
    (VLLM, "constrained"),
    ((*SERVER, "engine.structured_outputs=vllm"), "constrained"),
    (SERVER, "free"),
    ((), "free"),  # the extractive engine
    ((*VLLM, FREE), "free"),
    ((*VLLM, CONSTRAINED), "constrained"),
    ((*VLLM, "experiment=memwalker_table2", "corpus.path=."), "free"),
    ((*VLLM, "experiment=readagent_table3", "corpus.path=."), "free"),
]


@pytest.mark.parametrize(("words", "expected"), AUTO)
def test_replies_are_constrained_by_default_where_the_engine_can(
    words: tuple[str, ...], expected: str
) -> None:
    resolved = read_run(words)
    assert run_manifest(resolved)["report"]["reply_format"] == expected
