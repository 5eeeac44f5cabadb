"""`gistmill ask` of a single file, its mistakes, and runs that make memories and ask nothing, which
it answers from."""

import json
from pathlib import Path

import pytest

from tests.support.command import gistmill, refused, sql, succeeded
from tests.support.texts.documents import pdf

pytestmark = pytest.mark.slow

TOWER = """\
The keeper climbed the tower every evening at six. He carried oil in a tin can.

On the ninth of March the stairs gave way below him. The baker freed the keeper.
"""
MILL = ["The miller lived beside the river.", "His wheel turned day and night."]
SMALL_PAGES = ("memory=uniform", "memory.words=16")  # a paragraph of TOWER each


class Asked:
    """A folder with two documents: first the night that makes their memories, then questions."""

    def __init__(self, folder: Path) -> None:
        self.books, self.warehouse = folder / "books", folder / "w"
        (self.books / "deep").mkdir(parents=True)
        (self.books / "tower.md").write_text(TOWER)
        (self.books / "deep" / "mill.pdf").write_bytes(pdf(MILL))
        where = (f"warehouse={self.warehouse}", *SMALL_PAGES)
        corpus = ("corpus=text", f"corpus.path={self.books}")
        self.night = gistmill("run", *corpus, "methods=none", "run=night", *where)
        self.memories = self.shards()
        asked = ("ask", self.books / "tower.md", "Who freed the keeper?", "method=bm25(top_k=1)")
        self.first = gistmill(*asked, *where)
        self.again = gistmill(*asked, *where, "--json")

    def shards(self) -> set[str]:
        """The shards of pages and gists."""
        tables = self.warehouse / "tables"
        return {str(file) for name in ("pages", "gists") for file in (tables / name).rglob("*.*")}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(tmp_path_factory.mktemp("asked"))


def test_a_run_without_methods_makes_memories_and_reports_them(asked: Asked) -> None:
    out = succeeded(asked.night)
    assert "2 documents, 44 words" in out
    assert "No question was asked; these are the memories." in out
    assert "| method" not in out
    assert "| words per document " in out
    rows = sql(asked.warehouse, "select document_id, count(*) as n from gists group by all "
               "order by all", "run=night")  # fmt: skip
    assert rows == [{"document_id": "deep/mill", "n": 1}, {"document_id": "tower", "n": 2}]
    report = json.loads(
        succeeded(gistmill("report", f"warehouse={asked.warehouse}", "run=night", "--json"))
    )
    assert report["rows"] == [] and report["inputs"]["not_done"] == 0
    (words,) = [size for size in report["sizes"] if size["measure"] == "words per document"]
    assert (words["n"], words["min"], words["max"]) == (2, 12.0, 32.0)


def test_a_question_is_answered_from_the_memory_that_is_there(asked: Asked) -> None:
    out = succeeded(asked.first)
    assert out.startswith("On the ninth of March") or out.startswith("The baker freed the keeper.")
    assert "rests on page 1 of 2; 16 words in the final context" in out
    quote = "On the ninth of March the stairs gave way below him. The baker freed the keeper."
    assert f'  tower.md, page 1:\n    "{quote}"\n' in out
    assert asked.shards() == asked.memories  # no page and no gist was made again
    assert "engine=extractive, which is no language model" in asked.first.stderr


def test_the_same_question_is_not_answered_twice(asked: Asked) -> None:
    found = json.loads(succeeded(asked.again))
    (answer,) = found["results"]
    assert answer["document_id"] == "tower"
    assert [page["page_index"] for page in answer["pages"]] == [1]
    assert succeeded(asked.first).startswith(answer["answer"])
    assert "reading: " not in asked.again.stderr  # nothing was executed


@pytest.mark.parametrize(("told", "chosen_by"), [((), "rule"), (("memory=model",), "end")])
def test_no_page_waits_for_a_model_unless_told(
    tmp_path: Path, told: tuple[str, ...], chosen_by: str
) -> None:
    (tmp_path / "tower.md").write_text(TOWER)
    where = f"warehouse={tmp_path / 'w'}"
    succeeded(gistmill("ask", tmp_path / "tower.md", "Who freed the keeper?", where, *told))
    assert sql(tmp_path / "w", "select distinct chosen_by from pages") == [{"chosen_by": chosen_by}]


MISTAKES = [
    ([], "ask: name a file or folder, and then the question: gistmill ask book.pdf"),
    (["Who?"], "ask: name a file or folder, and then the question: "),
    (["{}/tower.md", " "], "ask: name a file or folder, and then the question: "),
    (["{}", "{}/tower.md"], "ask: {}/tower.md is a file; the question comes after it: "),
    (["{}/towre.md", "Who?"], "{}/towre.md: no such file or folder; nearest: tower.md"),
    (["/nowhere/a.md", "Who?"], "/nowhere/a.md: no such file or folder; name one that is there"),
    (["{}", "Who?", "corpus=qmsum"], "ask: corpus= is not for it; "),
    (["{}", "Who?", "corpus.split=test"], "ask: corpus.split= is not for it; "),
    (["{}/nothing", "Who?"], "{}/nothing: no .txt .md "),
    (["{}", "Who?", "methods=none"], "ask: methods=none asks nothing; name a method"),
    (["{}", "Who?", "method=bm52"], "methods: no method 'bm52'; nearest: bm25"),
    (["{}", "Who?", "engin=vllm"], "engin: no such key"),
]


@pytest.mark.parametrize(("words", "says"), MISTAKES)
def test_mistakes_are_one_line(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "tower.md").write_text(TOWER)
    (tmp_path / "nothing").mkdir()
    given = [word.replace("{}", str(tmp_path)) for word in words]
    line = refused("ask", *given, f"warehouse={tmp_path / 'w'}")
    assert line.startswith(says.replace("{}", str(tmp_path)))
