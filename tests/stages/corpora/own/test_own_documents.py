"""Folders of a user's own documents: what is read, what it is called, what is left out."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from jobs.graph.preparation import load_corpus
from jobs.graph.resolved_run import read_run
from pipeline.core.errors import UsageError
from pipeline.store import Shards
from pipeline.work.units import Committed
from stages.corpora import Loaded, load
from stages.corpora import corpus_of as of_section
from tests.support.texts.documents import epub, pdf, scan, word
from tests.support.texts.loading import asked, corpus_of, details, loaded

LINE = "The keeper climbed the tower."


def placed(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


def texts(corpus: list[Loaded]) -> dict[str, str]:
    return {
        i.document.document_id: i.document.text for i in corpus if not i.document.why_unusable()
    }


def left_out(corpus: list[Loaded]) -> dict[str, str | None]:
    return {i.document.document_id: i.document.detail for i in corpus if i.document.skipped}


def test_every_kind_of_document_in_folders_and_sub_folders(tmp_path: Path) -> None:
    placed(tmp_path, {
        "a.TXT": LINE.encode(), "b.md": f"# Tower\n\n{LINE}".encode(), "deep/er/c.PDF": pdf([LINE]),
        "d.epub": epub({"a.xhtml": f"<p>{LINE}</p>"}), "deep/e.docx": word(LINE),
        "f.html": f"<p>{LINE}</p>".encode(), "g.htm.gz": gzip.compress(f"<p>{LINE}".encode()),
        "h.markdown": LINE.encode(), "i.txt.gz": gzip.compress(LINE.encode()),
    })  # fmt: skip
    assert texts(loaded(tmp_path, "text")) == {
        **dict.fromkeys(("a", "d", "deep/e", "deep/er/c", "f", "g", "h", "i"), LINE),
        "b": f"# Tower\n\n{LINE}",
    }
    for name in ("a.TXT", "d.epub", "deep/er/c.PDF", "g.htm.gz"):
        assert [*texts(loaded(tmp_path / name, "text")).values()] == [LINE]


def test_what_a_file_says_of_itself_is_metadata(tmp_path: Path) -> None:
    placed(tmp_path, {
        "a.md": f"---\ntitle: Tower\ndate: 1893-05-01\n---\n{LINE}".encode(),
        "b.txt": b"---\na: 1\n---\nB", "c.pdf": pdf([LINE], [], ["Two."]),
    })  # fmt: skip
    corpus = loaded(tmp_path, "text")
    assert texts(corpus) == {"a": LINE, "b": "---\na: 1\n---\nB", "c": f"{LINE}\n\nTwo."}
    assert [json.loads(item.document.metadata) for item in corpus] == [
        {"title": "Tower", "date": "1893-05-01"}, {}, {"missing": "no text in 1 of 3 pages (2)"},
    ]  # fmt: skip


def test_what_is_no_document_is_skipped_and_says_why(tmp_path: Path) -> None:
    placed(tmp_path, {
        "a.txt": LINE.encode(), "cover.jpg": b"\xff\xd8", "notes": b"x", ".DS_Store": b"x",
        ".git/a.txt": b"x", "deep/table.xlsx": b"PK", "warehouse/gistmill.json": b"{}",
        "warehouse/runs/n/report.md": b"# n",
    })  # fmt: skip
    (tmp_path / "deep" / "up").symlink_to(tmp_path)
    outside = placed(tmp_path.with_name("outside"), {"o.txt": b"Out."})
    (tmp_path / "linked").symlink_to(outside)
    (tmp_path / "twice").symlink_to(outside)
    (tmp_path / "zz").symlink_to(tmp_path.parent)
    corpus = loaded(tmp_path, "text")
    assert texts(corpus) == {"a": LINE, "linked/o": "Out."}
    said = left_out(corpus)
    assert {*said} == {
        "cover.jpg", "notes", ".DS_Store", ".git", "deep/table.xlsx", "deep/up", "twice",
        "warehouse", "zz",
    }  # fmt: skip
    for name in ("deep/up", "twice", "zz"):
        assert (said[name] or "").startswith(f"{name}: a link to a folder that is read under")
    assert said["warehouse"] == "warehouse: a warehouse of gistmill; move it elsewhere"
    assert said[".git"] == ".git: hidden; rename it to have it read"
    assert (said["cover.jpg"] or "").startswith("cover.jpg: none of .txt .md")


def test_of_a_warehouse_its_own_folders_are_not_read(tmp_path: Path) -> None:
    files = {
        "a.txt": b"A",
        "gistmill.json": b"{}",
        "runs/n/report.md": b"# n",
        "x/runs/b.txt": b"B",
    }
    corpus = loaded(placed(tmp_path, files), "text")
    assert texts(corpus) == {"a": "A", "x/runs/b": "B"} and [*left_out(corpus)] == ["gistmill.json"]


def test_documents_of_one_name_keep_their_suffix(tmp_path: Path) -> None:
    files = {"a.pdf": pdf(["Pdf."]), "a.txt": b"A", "b.txt": b"B", "sub/a.txt": b"Below."}
    corpus = loaded(placed(tmp_path, files), "text")
    assert texts(corpus) == {"a.pdf": "Pdf.", "a.txt": "A", "b": "B", "sub/a": "Below."}


def test_a_kept_suffix_is_no_other_documents_name(tmp_path: Path) -> None:
    names = ("paper.md", "paper.txt", "paper.md.txt", "paper.txt.txt")
    corpus = loaded(placed(tmp_path, {name: name.encode() for name in names}), "text")
    assert texts(corpus) == {name: name for name in names}


def test_what_is_left_out_takes_no_name_of_a_document(tmp_path: Path) -> None:
    """A file without a suffix may be a folder's Makefile, or an older copy."""
    files = {"tower": b"x", "tower.txt": LINE.encode(),
             "questions.csv": b"document_id,question\ntower,Who climbed?\n"}  # fmt: skip
    corpus = loaded(placed(tmp_path, files), "text")
    assert texts(corpus) == {"tower": LINE}
    assert [*left_out(corpus)] == ["tower:1"]
    assert [(q.document_id, q.problem) for q in asked(corpus)] == [("tower", None)]


def test_of_very_many_files_that_are_left_out_the_first_are_named(tmp_path: Path) -> None:
    placed(tmp_path, {"a.txt": b"one", **{f"x{n:03}.js": b"x" for n in range(103)}})
    said = left_out(loaded(tmp_path, "text"))
    assert len(said) == 101 and "x099.js" in said and "x100.js" not in said
    assert (said["(others)"] or "").startswith(
        "(others): 3 more that are left out (x100.js, x101.js, x102.js ...); "
    )


def test_what_cannot_be_read_is_named_and_costs_no_other(tmp_path: Path) -> None:
    corpus = loaded(placed(tmp_path, {
        "good.txt": LINE.encode(), "scan.pdf": scan(2), "torn.epub": b"PK\x03\x04",
        "locked.pdf": pdf([LINE], password="x"), "empty.docx": b"", "nothing.html": b"<p> </p>",
        "picture.html": b"\x89PNG\r\n",
    }), "text")  # fmt: skip
    assert texts(corpus) == {"good": LINE}
    found = {item.document.document_id: item.document.problem for item in corpus}
    assert [name for name, problem in found.items() if problem == "bad_input"] == [
        "empty", "locked", "nothing", "picture", "scan", "torn",
    ]  # fmt: skip
    assert [detail.partition(":")[0] for detail in details(corpus)] == [
        "empty.docx", "locked.pdf", "nothing.html", "picture.html", "scan.pdf", "torn.epub",
    ]  # fmt: skip


def test_a_folder_in_which_nothing_can_be_read(tmp_path: Path) -> None:
    placed(tmp_path / "bad", {"scan.pdf": scan(), "x.jpg": b"x"})
    with pytest.raises(UsageError, match=r"bad: no document in it can be read: scan\.pdf: no text"):
        loaded(tmp_path / "bad", "text")
    placed(tmp_path / "others", {"x.jpg": b"x", "questions.csv": b"document_id,question\na,b\n"})
    with pytest.raises(
        UsageError, match=r"others: no \.txt .* files of other kinds: 1 \(x\.jpg\);"
    ):
        loaded(tmp_path / "others", "text")
    with pytest.raises(UsageError, match=r"x\.pdf: no document in it can be read: x\.pdf: damaged"):
        loaded(placed(tmp_path, {"x.pdf": b"x"}) / "x.pdf", "text")


QUESTIONS = """\ufeffdocument_id;question;references;options;answer_index;page
a;Who climbed?;The keeper;;;3
a.txt;What, exactly?;"[""Oil"", ""Lamp oil""]";;;
sub/b.pdf;Which?;;Sand | Oil;1;
nobody;Who?;;;;
"""


def test_questions_in_csv_name_documents_by_id_or_file(tmp_path: Path) -> None:
    corpus = loaded(placed(tmp_path, {
        "a.txt": LINE.encode(), "sub/b.pdf": pdf([LINE]), "questions.csv": QUESTIONS.encode(),
    }), "text")  # fmt: skip
    first, second, third, lost = asked(corpus)
    assert (first.document_id, first.references, json.loads(first.metadata)) == (
        "a", ("The keeper",), {"page": "3"},
    )  # fmt: skip
    assert (second.document_id, second.references) == ("a", ("Oil", "Lamp oil"))
    assert (third.document_id, third.options, third.answer_index) == ("sub/b", ("Sand", "Oil"), 1)
    assert (lost.problem, lost.document_id) == ("bad_input", "nobody")
    placed(tmp_path, {"questions.jsonl": b"{}"})
    with pytest.raises(UsageError, match=r"both questions\.jsonl and questions\.csv; keep one"):
        loaded(tmp_path, "text")


def test_a_column_that_is_spelt_wrong_is_one_mistake(tmp_path: Path) -> None:
    placed(tmp_path, {"a.txt": LINE.encode(), "questions.csv": b"document,question\na,Who?\n"})
    with pytest.raises(UsageError, match=r"questions\.csv: no row has a document_id; rename docu"):
        loaded(tmp_path, "text")


def test_files_that_are_asked_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of one name are called by their paths; one is asked once, however it is written. What is
    not asked is counted: the questions of corpus=text, too."""
    placed(tmp_path, {"a/x.txt": b"A.", "b/x.txt": b"B.", "b/y.pdf": scan(), "z.txt": b"Z."})
    paths = [str(tmp_path / name) for name in ("a/x.txt", "b", "z.txt", "b/x.txt")]
    section = corpus_of(tmp_path / "a", "text").model_dump(mode="json")
    asked_of = {"format": "asked", "paths": paths, "question": "Who?"}
    found = list(load(of_section({**section, **asked_of})))
    x = str(tmp_path / "a" / "x"), str(tmp_path / "b" / "x")
    assert texts(found) == {x[0]: "A.", x[1]: "B.", "z": "Z."}
    questions = asked(found)
    assert [question.document_id for question in questions] == [*x, "z"]
    assert {question.question for question in questions} == {"Who?"}
    assert len({question.question_id for question in questions}) == 3
    assert [i.document.document_id for i in found if i.document.problem] == ["y"]
    placed(tmp_path, {"a/questions.csv": b"document_id,question\nx,Who?\n"})
    monkeypatch.chdir(tmp_path / "a")
    paths = ["x.txt", str(tmp_path / "a" / "x.txt"), "../a/x.txt", "../a"]
    found = list(load(of_section({**section, **asked_of, "paths": paths})))
    assert (texts(found), [*left_out(found)]) == ({"x": "A."}, ["questions.csv"])


def test_what_is_said_of_a_folder(tmp_path: Path) -> None:
    """Lines on standard error: what was not read, read in part, paged by characters, or bad."""
    placed(tmp_path / "books", {
        "a.txt": LINE.encode(), "b.pdf": pdf([LINE], []), "c.pdf": b"x",
        "d.txt": "zwölf Löwen".encode("cp1252"), "e.txt": "zwölf ".encode() + b"\x96",
        "f.txt": bytes(range(128, 256)), "g.txt": b"x" * 2000,
        **{f"{n:02}.jpg": b"x" for n in range(22)},
        "questions.csv": "document_id,question\na,Löwen?\nd,Möwen?\n".encode("cp1252"),
    })  # fmt: skip
    words = ["corpus=text", f"corpus.path={tmp_path / 'books'}", "methods=none"]
    resolved = read_run([*words, f"warehouse={tmp_path / 'w'}"])
    said: list[str] = []
    steps = resolved.steps
    assert [step.name for step in steps] == ["documents", "questions", "paginate", "gist"]
    shards, nothing = Shards(resolved.config.warehouse), Committed(units={}, inputs={})
    keys = [*load_corpus(resolved.config, shards, steps, nothing, said.append)]
    assert len(keys) == 29
    assert said[0].startswith("not read: 00.jpg: none of ") and len(said) == 20 + 1 + 1 + 1 + 3 + 2
    assert said[20] == "not read: and 2 more; their rows in documents and questions say why"
    assert said[21] == "read in part: b.pdf: no text in 1 of 2 pages (2)"
    assert said[22].startswith("paged by characters: g: over 1,000 characters")
    notes = sorted(line for line in said if line.startswith("in doubt: "))
    assert [line.split(": ")[1] for line in notes] == ["d.txt", "e.txt", "questions.csv"]
    assert all(" read as cp1252; " in line for line in (notes[0], notes[2]))
    assert " U+FFFD: 1; " in notes[1]
    bad = [line for line in said if line.startswith("bad_input: ")]
    assert [line.split(": ")[1] for line in bad] == ["c.pdf", "f.txt"]


def test_a_folder_that_may_not_be_entered_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """root enters every folder, so listing it is refused instead."""
    placed(tmp_path, {"a.txt": LINE.encode(), "z/c.txt": b"x"})
    listdir = os.listdir

    def forbidden(folder: Path) -> list[str]:
        if str(folder).endswith("/z"):
            raise PermissionError(13, "Permission denied")
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", forbidden)
    corpus = loaded(tmp_path, "text")
    assert (texts(corpus), details(corpus)) == (
        {"a": LINE}, ["z: Permission denied; fix or delete it"],
    )  # fmt: skip


def test_an_entry_that_may_not_be_looked_at_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed(tmp_path, {"a.txt": LINE.encode(), "b.txt": b"x"})
    is_dir = UPath("x").__class__.is_dir

    def forbidden(file: Any) -> bool:
        if file.name == "b.txt":
            raise PermissionError(13, "Permission denied")
        return is_dir(file)

    monkeypatch.setattr(UPath("x").__class__, "is_dir", forbidden)
    corpus = loaded(tmp_path, "text")
    assert (texts(corpus), details(corpus)) == (
        {"a": LINE}, ["b.txt: Permission denied; fix or delete it"],
    )  # fmt: skip
