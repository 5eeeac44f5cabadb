"""Mistakes in a plugin: one line where it is imported, or problem rows of its own method alone."""

import json
from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.registry import load_plugins
from pipeline.work.stage import STAGES, Stage, refuse_wrong_parts
from tests.support.command import ROOT, own_process, sql, succeeded
from tests.support.texts.small_corpus import UNIFORM, document, question, write

CODE = (ROOT / "tests" / "support" / "quote_plugin" / "quote.py").read_text()
NAME, VERSION = '    name: ClassVar[str] = "quote"\n', "    version: ClassVar[int] = 1\n"
HEAD = NAME + VERSION + "    reads"  # of the stage, not of the prompt
LAST = "] = (CopyQuote,)\n"
TOKENS = "    max_reply_tokens: ClassVar[int] = 100\n"
KEY = '("question_id", "place")'
SAMPLE = '(cls("The bell {{ rings }}.", "Who rang <5> it?", 8105),)'
COLUMNS = "    report_columns: ClassVar[Any] = {'any': (Column('lr_1', 'x', 9),)}\n"
LOADED = [  # what is replaced, by what, and the line that says what is wrong
    (HEAD, NAME + "    reads", "QuotePages has no `version`; write `version: "),
    (VERSION + TOKENS, TOKENS, "CopyQuote has no `version`; write `version: "),
    (HEAD, VERSION + "    reads", "QuotePages.name is no str"),
    ("[type[Record]] = Quote\n", "[object] = 'quotes'\n", "QuotePages.writes is no Record class"),
    ("(Page, Lookup)", "Page", "QuotePages.reads is no tuple of classes; write `(Name,)`"),
    (LAST, LAST + "    role: ClassVar[Any] = 'writer'\n",
     "QuotePages.role 'writer' is none; there are reader, memory, extractor, query_expander,"),
    (LAST, LAST + COLUMNS,
     "QuotePages makes the measure 'lr_1', which is that of stages.tables.answers.Rating"),
    ("async def run", "async def rum", "QuotePages.run is missing; write it"),
    (HEAD, HEAD.replace("quote", "gist"), "QuotePages is the stage gist, which is that of"),
    ("place: int", "place: dict",
     "Quote.place is no column's type; a column is str, int, float, bool, datetime, a tuple"),
    (KEY, '("question",)', "Quote.key no column 'question'; there are document_id"),
    ('"quotes"', '"answers"', "Quote writes the table 'answers', which is that of"),
    ("import asyncio", "import shout", "cannot be imported: ModuleNotFoundError: No module"),
    (TOKENS, "", "the prompt CopyQuote has no max_reply_tokens; write one"),
    (SAMPLE, "()", "CopyQuote.samples is to return examples of the prompt; there are none"),
]  # fmt: skip


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize(("old", "new", "told"), LOADED)
def test_a_class_that_cannot_be_used(tmp_path: Path, old: str, new: str, told: str) -> None:
    folder = tmp_path / "loud"
    folder.mkdir()
    assert old in CODE
    text = CODE.replace("import (\n", "import (\n    Column,\n", 1).replace(old, new, 1)
    (folder / "quote.py").write_text(text)
    with pytest.raises(UsageError) as raised:
        load_plugins([str(folder)])
    line = str(raised.value)
    assert told in line and line.startswith(f"plugins={folder}: ") and "\n" not in line


@pytest.mark.usefixtures("registries")
def test_our_own_records_have_none() -> None:
    """They are not checked when they are loaded."""
    ours: list[type[Stage]] = [*STAGES.values()]
    assert len(ours) > 50
    for stage in ours:
        refuse_wrong_parts(stage.writes, stage.prompts)
        assert stage.version > 0


MODULE = """
from dataclasses import dataclass
from typing import ClassVar
from gistmill.plugin import Page, QuestionRow, Stage

@dataclass(frozen=True, slots=True, kw_only=True)
class Shout(QuestionRow):
    table: ClassVar[str] = "shouts"
    key: ClassVar[tuple[str, ...]] = ("question_id",)
    shout: str | None
    length: int = 0
    words: tuple[str, ...] = ()

class ShoutQuestion(Stage):
    name: ClassVar[str] = "shout"
    version: ClassVar[int] = 1
    writes: ClassVar[type] = Shout

    async def run(self, rows, ask):
        return [self.row(q) for q in rows.questions]

    def row(self, q, **more):
        own = {"document_id": q.document_id, "question_id": q.question_id, "shout": "HO"}
        return Shout(**{**own, **more})
"""
RETURNED = {  # a kind of the stage: the body of its `run`, and what its problem rows say
    "raises": ("raise ValueError('nothing to say')", "ValueError: nothing to say"),
    "map": ("return {}", "returned dict, not a list of Shout"),
    "other": ("return [Page.about(rows.document)]", "row 0 is of class Page, not Shout"),
    "number": ("return [self.row(q, shout=3.5) for q in rows.questions]",
               "shouts: row 0: shout: Input should be a valid string, not 3.5"),
    "huge": ("return [self.row(q, length=2**63) for q in rows.questions]",
             "shouts: row 0: length: 9223372036854775808 has more than 64 bits"),
    "inner": ("return [self.row(q, words=('a', 1)) for q in rows.questions]",
              "shouts: row 0: words.1: Input should be a valid string, not 1"),
    "surrogate": ("return [self.row(q, shout=chr(0xd800)) for q in rows.questions]",
                  "shouts: row 0: shout: a surrogate, which is no character"),
    "fewer": ("return []", "shouts do not match questions"),
}  # fmt: skip
FAILED = """
class Failing(ShoutQuestion):
    kind: ClassVar[str] = "failing"

    async def run(self, rows, ask):
        return []

    def failed(self, rows, problem, detail):
        return [self.row(q, shout=1) for q in rows.questions]
"""


@pytest.mark.slow
def test_a_stage_that_returns_wrong_rows_ends_no_other_method(tmp_path: Path) -> None:
    folder, numbers = tmp_path / "loud", range(2)
    (folder / "conf" / "method").mkdir(parents=True)
    kinds = [
        f"class S{n}(ShoutQuestion):\n    kind: ClassVar[str] = {kind!r}\n\n"
        f"    async def run(self, rows, ask):\n        {body}\n"
        for n, (kind, (body, _)) in enumerate(RETURNED.items())
    ]
    (folder / "shout.py").write_text("\n".join([MODULE, *kinds, FAILED]))
    for kind in [*RETURNED, "failing"]:
        stages = f"{{shout: {{kind: {kind}}}, look_up: {{kind: none}}, answer: {{kind: nothing}}}}"
        (folder / "conf" / "method" / f"m_{kind}.yaml").write_text(
            f"arguments: {{}}\nstages: {stages}\n"
        )
    write(tmp_path / "corpus", [document(n) for n in numbers], [question(n, of=n) for n in numbers])
    warehouse = tmp_path / "warehouse"
    own = ["corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, f"plugins={folder}",
           "engine=extractive", "cluster=inline", f"warehouse={warehouse}", "max_problem_rate=1",
           f"methods=bm25,m_failing,{','.join(f'm_{kind}' for kind in RETURNED)}"]  # fmt: skip
    out = json.loads(succeeded(own_process("run", *own, "--json")))
    assert out["report"]["inputs"]["not_done"] == 0
    rows = sql(warehouse, "select method, problem, detail from shouts")
    failing = "shouts: row 0: shout: Input should be a valid string, not 1 (from its `failed`"
    told = {"failing": failing, **{kind: why for kind, (_, why) in RETURNED.items()}}
    assert len(rows) == len(numbers) * len(told)
    for row in rows:
        assert row["problem"] == "unit_failed" and "shout.py" in row["detail"]
        assert told[row["method"].removeprefix("m_")] in row["detail"]
    answered = "select count(*) n from answers where method like 'bm25%' and problem is null"
    assert sql(warehouse, answered) == [{"n": 2}]
