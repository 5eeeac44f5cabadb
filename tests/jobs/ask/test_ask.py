"""`gistmill ask` of a folder and of a file: the answer, the passage, file and page it rests on."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import gistmill, refused, sql, succeed, succeeded
from tests.support.texts.documents import pdf

pytestmark = pytest.mark.slow

NAMES = [
    "anna", "bertha", "clara", "dora", "emma", "frieda", "gerta", "hanna", "ida", "julia", "klara",
    "lena",
]  # fmt: skip
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
        text = (
            f"Dear {name.title()}, all of us are well here. {harvest}{news}\n\nPlease write soon."
        )
        (folder / f"{name}.txt").write_text(text)
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
    (answer,) = letters.found["results"]
    assert SOLD in answer["answer"]
    best = answer["pages"][0]
    assert (best["file"], best["document_id"], best["page_index"]) == ("gerta.txt", "gerta", 1)
    assert SOLD in best["passage"] and best["passage"] in best["text"].replace("\n", " ")
    assert all(best["score"] > other["score"] for other in answer["pages"][1:])
    out = succeeded(letters.first)
    assert f'  gerta.txt, page 1:\n    "{best["passage"]}"\n' in out
    assert out.count("page 1:") == 1
    assert f"rests on {len(answer['pages'])} pages of " in out and "(of 12); " in out


def test_the_commands_that_it_names_run(letters: Letters) -> None:
    commands = [line for line in succeeded(letters.first).splitlines() if "gistmill " in line]
    shown, traced = (succeeded(gistmill(*shlex.split(line)[1:])) for line in commands)
    assert shown.startswith("gerta: ") and "wanted it." in shown
    assert traced.startswith(f"QUESTION {letters.found['results'][0]['question_id']}")
    assert "{gerta.txt, page 1}" in traced


def test_it_is_a_run_of_one_question_whose_document_is_of_the_best_pages(letters: Letters) -> None:
    run = f"run={letters.found['run']}"
    (row,) = sql(letters.warehouse, "select count(*) as n, any_value(question) as q "
                 "from results join questions using (question_id)", run)  # fmt: skip
    assert row == {"n": 1, "q": QUESTION}
    (page,) = sql(letters.warehouse, "select p.text, gist from pages p join gists using "
                  f"(document_id, page_index) where p.text like '%{SOLD}%'", run)  # fmt: skip
    assert page["text"].startswith("{gerta.txt, page 1}\n\n" + SOLD)
    assert page["gist"].startswith("{gerta.txt, page 1} ")
    calls = sql(letters.warehouse, "select prompt, count(*) as n from calls group by all", run)
    assert {row["prompt"]: row["n"] for row in calls} == {"look_up_p": 1, "answer": 1}


def test_a_second_question_and_a_new_letter_leave_the_memories_alone(tmp_path: Path) -> None:
    letters = Letters(tmp_path)
    succeeded(letters.ask("Which field had a good harvest?"))
    assert shards(letters.warehouse) >= letters.memories
    (letters.folder / "zoe.txt").write_text("Dear Zoe, the well is dry.")
    asked = json.loads(succeeded(letters.ask("What is dry?", "--json")))
    (answer,) = asked["results"]
    (zoe,) = [page for page in answer["pages"] if page["file"] == "zoe.txt"]
    assert zoe["passage"] == "Dear Zoe, the well is dry."
    made = sql(letters.warehouse, "select document_id, count(*) as n from calls where prompt = "
               "'gist' group by all", f"run={asked['memories_run']}")  # fmt: skip
    assert {"document_id": "zoe", "n": 1} in made
    (letters.folder / "anna.txt").unlink()  # a folder that has lost a file is asked, too
    assert json.loads(succeeded(letters.ask(QUESTION, "--json")))["num_files"] == 12


def test_words_limit_what_the_method_chooses_from(letters: Letters) -> None:
    asked = json.loads(succeeded(letters.ask(QUESTION, "--words", "20", "--json")))
    (answer,) = asked["results"]
    assert [(page["file"], page["page_index"]) for page in answer["pages"]] == [("gerta.txt", 1)]
    assert answer["num_pages"] == 1


def test_each_letter_answers_by_itself(letters: Letters) -> None:
    done = letters.ask(QUESTION, "--each", "method=bm25(top_k=1)")
    assert re.findall("^== (.*), bm25", succeeded(done), re.MULTILINE) == NAMES


def test_a_bad_file_is_a_line_and_the_rest_is_answered(tmp_path: Path) -> None:
    folder = write_letters(tmp_path / "mixed", ["anna", "gerta"])
    (folder / "torn.pdf").write_bytes(b"%PDF-1.4 torn")
    done = gistmill("ask", folder, QUESTION, f"warehouse={tmp_path / 'w'}")
    assert SOLD in succeeded(done)
    (line,) = [line for line in done.stderr.splitlines() if "torn" in line]
    assert line.startswith("bad_input: torn.pdf: ")


def test_a_folder_without_a_readable_file_is_a_mistake(tmp_path: Path) -> None:
    folder = write_letters(tmp_path / "bad", [])
    for name in ("a.txt", "b.md"):
        (folder / name).write_text("")
    done = gistmill("ask", folder, "Who?", f"warehouse={tmp_path / 'w'}")
    assert (done.returncode, done.stdout) == (2, "")
    *_, line = done.stderr.splitlines()
    assert line.startswith(f"gistmill: {folder}: no document in it can be read: a.txt: ")


def test_the_page_of_an_answer_is_written_and_its_address_printed(
    letters: Letters, tmp_path: Path
) -> None:
    file = tmp_path / "answer.html"
    out = succeeded(letters.ask(QUESTION, "--html", str(file)))
    question = letters.found["results"][0]["question_id"]
    method = "readagent_p%28max_pages%3D5%29"
    address = f"{file.as_uri()}#question={question}&method={method}"
    assert out.splitlines()[-1] == address
    assert letters.found["run"] in file.read_text()


# A paragraph is one of SMALL_PAGES.
TOWER = """\
The keeper climbed the tower every evening at six. He carried oil in a tin can.

On the ninth of March the stairs gave way below him. The baker freed the keeper.
"""
MILL = ["The miller lived beside the river.", "His wheel turned day and night."]


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
        self.memories = shards(self.warehouse)
        asked = ("ask", self.books / "tower.md", "Who freed the keeper?", "method=bm25(top_k=1)")
        self.first = gistmill(*asked, *where)
        self.again = gistmill(*asked, *where, "--json")


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
    report = json.loads(succeed("report", f"warehouse={asked.warehouse}", "run=night", "--json"))
    assert report["rows"] == [] and report["inputs"]["not_done"] == 0
    (words,) = [size for size in report["sizes"] if size["measure"] == "words per document"]
    assert (words["n"], words["min"], words["max"]) == (2, 12.0, 32.0)


def test_a_question_is_answered_from_the_memory_that_is_there(asked: Asked) -> None:
    out = succeeded(asked.first)
    assert out.startswith("On the ninth of March") or out.startswith("The baker freed the keeper.")
    assert "rests on page 1 of 2; 16 words in the final context" in out
    quote = "On the ninth of March the stairs gave way below him. The baker freed the keeper."
    assert f'  tower.md, page 1:\n    "{quote}"\n' in out
    assert shards(asked.warehouse) == asked.memories  # no page and no gist was made again
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
