"""How methods are written, what they are called, and which stages they are made of."""

from typing import Any

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.registry import import_installed
from pipeline.work.methods import expand_methods, methods_in
from pipeline.work.stage import Stage
from stages.read.answer_from_context import AnswerFromMemory, AnswerFromPages
from stages.read.answer_kinds import AnswerConstant, AnswerFromText, UpdateRunningSummary
from stages.retrieve.look_up import BM25, NoLookUp, RandomPages
from stages.retrieve.read_agent import ReadAgentP
from tests.support.command import ROOT
from tests.support.engines.embedding import counts

import_installed()
FOLDER = ROOT / "conf" / "method"
VALUES: dict[str, Any] = {
    "first_page": 1, "seed": 7, "repeat": 2, "embedder": counts("bell"), "answer_words": 20,
    "answer_each_look_up": False, "constant_answer": "He did it.", "paragraphs": "lines",
    "page_breaks": False, "words": 300, "max_words": 600, "num_words": 11, "answer_page_tags": True,
    "truncate_by": "words", "bm25": "plus_on_stems", "judged": "answer",
    "extraction_examples": False,
}  # fmt: skip
COMMON: dict[str, Any] = {"first_page": 1, "answer_words": 20, "answer_page_tags": True}


def names(text: str) -> list[str]:
    return [method.name for method in expand_methods(text, [FOLDER])]


def stages(text: str) -> list[Stage]:
    (method,) = expand_methods(text, [FOLDER])
    return [spec.made(method.name, VALUES) for spec in method.stages]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gist_only,gist_only()", ["gist_only"]),
        ("bm25", ["bm25(top_k=3)"]),
        (" gist_only , bm25( top_k = 5 ) ", ["gist_only", "bm25(top_k=5)"]),
        ("readagent_p(max_pages=1..3)", [f"readagent_p(max_pages={n})" for n in (1, 2, 3)]),
        ("bm25(top_k=6|1|3)", ["bm25(top_k=6)", "bm25(top_k=1)", "bm25(top_k=3)"]),
        ("truncated(keep=last)", ["truncated(keep=last,num_words=6000)"]),
        ("bm25(top_k=2..3),bm25,bm25(top_k=1..3)", [f"bm25(top_k={n})" for n in (2, 3, 1)]),
        ("memwalker(working_memory=visited|none,max_children=4,segment_tokens=9)",
         [f"memwalker(segment_tokens=9,max_children=4,working_memory={given},reasoning=true)"
          for given in ("visited", "none")]),
        ("bm25(budget=900,top_k=5)", ["bm25(top_k=5,budget=900)"]),
        # Several arguments multiply in the order written.
        ("truncated(num_words=1..2,keep=first|last),bm25",
         [*(f"truncated(keep={keep},num_words={n})" for n in (1, 2) for keep in ("first", "last")),
          "bm25(top_k=3)"]),
    ],
)  # fmt: skip
def test_names_are_canonical_and_in_the_order_written(text: str, expected: list[str]) -> None:
    assert names(text) == expected
    assert names(",".join(expected)) == expected, "a canonical name names itself"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("bm52(top_k=3)", ["no method 'bm52'", "nearest: bm25"]),
        ("bm25(k=3)", ["bm25: no argument 'k=3'", "it takes top_k"]),
        ("gist_only(top_k=3)", ["gist_only: no argument 'top_k=3'", "it takes none"]),
        ("truncated", ["truncated: keep is missing", "truncated(keep=...)"]),
        ("bm25(top_k=1,top_k=2)", ["top_k is given twice"]),
        ("bm25(top_k=6..1)", ["bm25: top_k=6..1: count up"]),
        ("bm25(top_k=0)", ["bm25(top_k=0): look_up.top_k: ", "greater than 0"]),
        ("bm25(top_k=1..)", ["top_k: "]),
        ("bm25(budget=1k)", ["bm25(budget=1k): answer.budget: ", "integer"]),
        ("truncated(keep=middle)", ["keep: ", "'first'"]),
        ("bm25(top_k=)", ["bm25: top_k= is not a value"]),
        ("truncated(keep=first,num_words=null)", ["truncated: num_words=null is not a value"]),
        ("bm25(top_k=2024-13-45)", ["top_k=2024-13-45 is not a value"]),
        ("bm25(top_k=3", ["'bm25(top_k=3' is not a method"]),
        ("../conf/method/bm25", ["is not a method"]),
        ("", ["names no method"]),
    ],
)
def test_what_is_wrong_is_named_in_one_line(text: str, parts: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        for method in expand_methods(text, [FOLDER]):
            for spec in method.stages:
                spec.made(f"methods: {method.name}", VALUES)
    line = str(raised.value)
    assert line.startswith("methods") and "\n" not in line
    assert all(part in line for part in parts), line


def test_arguments_reach_their_stage() -> None:
    from_memory, from_pages = AnswerFromMemory(**COMMON), AnswerFromPages(**COMMON, budget=9)
    assert stages("readagent_p(max_pages=4)") == [
        ReadAgentP(max_pages=4, first_page=1),
        from_memory,
    ]
    assert stages("bm25(budget=9)") == [BM25(top_k=None, bm25="plus_on_stems"), from_pages]
    assert stages("bm25_fill_context")[0] == BM25(top_k=None, bm25="plus_on_stems")
    assert stages("random_pages(budget=9)")[0] == RandomPages(top_k=None, seed=7, repeat=2)
    assert stages("truncated(keep=last,num_words=9)") == [
        NoLookUp(),
        AnswerFromText(**COMMON, keep="last", num_words=9, truncate_by="words"),
    ]
    assert stages("recurrence(summary_tokens=9)")[0] == UpdateRunningSummary(
        segment_tokens=2500, summary_tokens=9, asks_question=True, last_segment="summarized"
    )
    constant = stages("constant")[1]
    assert isinstance(constant, AnswerConstant)
    assert constant.constant_answer == "He did it."
    whole = stages("full_text")[1].model_dump()
    assert "constant_answer" not in whole
    assert whole["num_words"] is None, "the YAML's null goes before the 11 of VALUES"


@pytest.mark.parametrize("name", ["rag", "hyde", "rq_rag", "memorag", "dos_rag"])
def test_a_budget_is_filled_from_all_that_is_found(name: str) -> None:
    made = stages(f"{name}(retriever=bm25,budget=9)")
    (top_k,) = [of["top_k"] for of in (stage.model_dump() for stage in made) if "top_k" in of]
    assert (top_k, made[-1].model_dump()["budget"]) == (None, 9)


def test_every_method_shipped_can_be_made() -> None:
    given = {"dos_rag": "(budget=900)", "truncated": "(keep=first)",
             "truncated_to_context": "(keep=first)",
             "readagent_p_conditional": "(task=Find it.)"}  # fmt: skip
    there = methods_in([FOLDER])
    assert all(stages(name + given.get(name, "")) for name in there)
    assert {"readagent_p", "readagent_s", "gist_only", "bm25"} <= set(there)
    assert there["truncated"] == (FOLDER / "truncated.yaml", {"keep": None, "num_words": 6000})


def test_a_setting_that_came_later_is_hashed_only_where_it_is_given() -> None:
    plain, within = (stages(f"bm25({given})")[1] for given in ("", "budget=9"))
    assert "budget" not in plain.hashed()
    assert within.hashed() == {**plain.hashed(), "budget": 9}
