"""`gistmill ask` of a folder and of a file: the answer, the passage, file and page it rests on."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, refused, sql_values, succeed, succeeded
from tests.support.texts.documents import pdf

pytestmark = pytest.mark.slow

NAMES = ["anna", "bertha", "clara", "dora", "emma", "frieda", "gerta", "hanna", "ida", "julia",
         "klara", "lena"]  # fmt: skip
SOLD = "Old Marten sold the lighthouse to a widow from Bergen for nine hundred crowns."
QUESTION = "Who bought the lighthouse from Marten?"
SMALL_PAGES = ("memory=uniform", "memory.words=16")


def shards(warehouse: Path) -> set[str]:
    """The files of pages and gists."""
    tables = (warehouse / "tables" / name for name in ("pages", "gists"))
    return {str(file) for table in tables for file in table.rglob("*.*")}


def write_letters(folder: Path, names: list[str] = NAMES) -> Path:
    """A letter to each; the one to gerta says in its second page who bought the lighthouse."""
    folder.mkdir()
    for number, name in enumerate(names, 3):
        harvest = f"The harvest of field {number} was good and the weather stayed mild. "
        news = f"\n\n{SOLD} Nobody knows why she wanted it." if name == "gerta" else ""
        greeting = f"Dear {name.title()}, all of us are well here."
        (folder / f"{name}.txt").write_text(f"{greeting} {harvest}{news}\n\nPlease write soon.")
    return folder


class Letters:
    """Twelve letters, and what was asked of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.warehouse = write_letters(folder / "letters"), folder / "w"
        self.words = (f"warehouse={self.warehouse}", *SMALL_PAGES)
        self.first = self.ask(QUESTION)
        self.memories = shards(self.warehouse)
        self.found = json.loads(succeeded(self.ask(QUESTION, "--json")))

    def ask(self, question: str, *more: str) -> Any:
        return gistmill("ask", self.folder, question, *self.words, *more)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Letters:
    return Letters(tmp_path_factory.mktemp("letters"))


def test_one_answer_quotes_the_letter_that_has_it(letters: Letters) -> None:
    """And the command that it names runs."""
    (answer,) = letters.found["results"]
    assert SOLD in answer["answer"]
    best, *others = answer["pages"]
    assert (best["file"], best["document_id"], best["page_index"]) == ("gerta.txt", "gerta", 1)
    assert SOLD in best["passage"] and best["passage"] in best["text"].replace("\n", " ")
    assert all(best["score"] > other["score"] for other in others)
    out = succeeded(letters.first)
    assert f'  gerta.txt, page 1:\n    "{best["passage"]}"\n' in out
    assert out.count("page 1:") == 1
    assert f"rests on {len(answer['pages'])} pages of " in out and "(of 12); " in out
    *_, command = out.splitlines()
    traced = succeed(*shlex.split(command)[1:])
    assert traced.startswith(f"QUESTION {answer['question_id']}")
    assert "{gerta.txt, page 1}" in traced


def test_it_is_a_run_of_one_question_whose_document_is_of_the_best_pages(letters: Letters) -> None:
    run = f"run={letters.found['run']}"
    asked = "select question from results join questions using (question_id)"
    assert sql_values(letters.warehouse, asked, run) == [(QUESTION,)]
    ((text, gist),) = sql_values(letters.warehouse, f"""select p.text, gist from pages p join gists
        using (document_id, page_index) where p.text like '%{SOLD}%'""", run)  # fmt: skip
    assert text.startswith("{gerta.txt, page 1}\n\n" + SOLD)
    assert gist.startswith("{gerta.txt, page 1} ")
    calls = sql_values(letters.warehouse, "select prompt from calls order by all", run)
    assert calls == [("answer",), ("look_up_p",)]


def test_a_second_question_and_a_new_letter_leave_the_memories_alone(tmp_path: Path) -> None:
    letters = Letters(tmp_path)
    succeeded(letters.ask("Which field had a good harvest?"))
    assert shards(letters.warehouse) >= letters.memories
    (letters.folder / "zoe.txt").write_text("Dear Zoe, the well is dry.")
    asked = json.loads(succeeded(letters.ask("What is dry?", "--json")))
    passages = {page["file"]: page["passage"] for page in asked["results"][0]["pages"]}
    assert passages["zoe.txt"] == "Dear Zoe, the well is dry."
    query = "select count(*) from calls where prompt = 'gist' and document_id = 'zoe'"
    assert sql_values(letters.warehouse, query, f"run={asked['memories_run']}") == [(1,)]
    (letters.folder / "anna.txt").unlink()  # a folder that has lost a file is asked, too
    assert json.loads(succeeded(letters.ask(QUESTION, "--json")))["num_files"] == 12


def test_words_limit_what_the_method_chooses_from(letters: Letters) -> None:
    asked = json.loads(succeeded(letters.ask(QUESTION, "--words", "20", "--json")))
    (page,) = asked["results"][0]["pages"]
    assert (page["file"], page["page_index"]) == ("gerta.txt", 1)
    assert asked["results"][0]["num_pages"] == 1


def test_each_letter_answers_by_itself(letters: Letters) -> None:
    done = letters.ask(QUESTION, "--each", "method=bm25(top_k=1)")
    assert re.findall("^== (.*), bm25", succeeded(done), re.MULTILINE) == NAMES


def test_a_bad_file_is_a_line_and_the_rest_is_answered(tmp_path: Path) -> None:
    """A folder without a readable file is a mistake."""
    folder = write_letters(tmp_path / "mixed", ["gerta"])
    (folder / "torn.pdf").write_bytes(b"%PDF-1.4 torn")
    words = ("ask", folder, QUESTION, f"warehouse={tmp_path / 'w'}")
    done = gistmill(*words)
    assert SOLD in succeeded(done)
    (line,) = [line for line in done.stderr.splitlines() if "torn" in line]
    assert line.startswith("bad_input: torn.pdf: ")
    (folder / "gerta.txt").write_text("")
    done = gistmill(*words)
    assert (done.returncode, done.stdout) == (2, "")
    *_, line = done.stderr.splitlines()
    assert line.startswith(f"gistmill: {folder}: no document in it can be read: gerta.txt: ")


# A paragraph is one of SMALL_PAGES.
TOWER = """\
The keeper climbed the tower every evening at six. He carried oil in a tin can.

On the ninth of March the stairs gave way below him. The baker freed the keeper.
"""
MILL = ["The miller lived beside the river.", "His wheel turned day and night."]


def test_a_run_without_methods_makes_the_memories_that_are_asked(tmp_path: Path) -> None:
    """A question about one of its documents is answered from them, and only once."""
    books, warehouse = tmp_path / "books", tmp_path / "w"
    (books / "deep").mkdir(parents=True)
    (books / "tower.md").write_text(TOWER)
    (books / "deep" / "mill.pdf").write_bytes(pdf(MILL))
    where = (f"warehouse={warehouse}", *SMALL_PAGES)
    corpus = ("corpus=text", f"corpus.path={books}")
    out = succeed("run", *corpus, "methods=none", "run=night", *where)
    assert "2 documents, 44 words" in out
    assert "No question was asked; these are the memories." in out
    assert "| method" not in out and "| words per document " in out
    query = "select document_id, count(*) from gists group by all order by all"
    assert sql_values(warehouse, query) == [("deep/mill", 1), ("tower", 2)]
    report = json.loads(succeed("report", where[0], "--json"))
    assert report["rows"] == [] and report["inputs"]["not_done"] == 0
    (words,) = [size for size in report["sizes"] if size["measure"] == "words per document"]
    assert (words["n"], words["min"], words["max"]) == (2, 12.0, 32.0)

    memories = shards(warehouse)
    asked = ("ask", books / "tower.md", "Who freed the keeper?", "method=bm25(top_k=1)", *where)
    first, again = gistmill(*asked), gistmill(*asked, "--json")
    (answer,) = json.loads(succeeded(again))["results"]
    assert succeeded(first).startswith(answer["answer"])
    assert answer["document_id"] == "tower"
    assert "rests on 1 page of 1 file (of 1); 16 words in the final context" in first.stdout
    quote = "On the ninth of March the stairs gave way below him. The baker freed the keeper."
    assert answer["answer"] in quote and f'  tower.md, page 1:\n    "{quote}"\n' in first.stdout
    assert shards(warehouse) == memories, "no page and no gist was made again"
    assert "engine=extractive, which is no language model" in first.stderr
    assert "reading: " not in again.stderr, "nothing was executed"


@pytest.mark.parametrize(("told", "chosen_by"), [((), "rule"), (("memory=model",), "end")])
def test_no_page_waits_for_a_model_unless_told(
    tmp_path: Path, told: tuple[str, ...], chosen_by: str
) -> None:
    (tmp_path / "tower.md").write_text(TOWER)
    where = f"warehouse={tmp_path / 'w'}"
    succeeded(gistmill("ask", tmp_path / "tower.md", "Who freed the keeper?", where, *told))
    assert sql_values(tmp_path / "w", "select distinct chosen_by from pages") == [(chosen_by,)]


MISTAKES = [
    ([], "ask: name a file or folder, and then the question: "),
    (["{}/tower.md", " "], "ask: name a file or folder, and then the question: "),
    (["{}", "{}/tower.md"], "ask: {}/tower.md is a file; the question comes after it: "),
    (["{}/towre.md", "Who?"], "{}/towre.md: no such file or folder; nearest: tower.md"),
    (["{}", "Who?", "corpus=qmsum"], "ask: corpus= is not for it; "),
    (["{}", "Who?", "corpus.split=test"], "ask: corpus.split= is not for it; "),
    (["{}/nothing", "Who?"], "{}/nothing: no .txt .md "),
    (["{}", "Who?", "methods=none"], "ask: methods=none asks nothing; name a method"),
]


@pytest.mark.parametrize(("words", "says"), MISTAKES)
def test_mistakes_are_one_line(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "tower.md").write_text(TOWER)
    (tmp_path / "nothing").mkdir()
    given = [word.replace("{}", str(tmp_path)) for word in words]
    line = refused("ask", *given, f"warehouse={tmp_path / 'w'}")
    assert line.startswith(says.replace("{}", str(tmp_path)))
