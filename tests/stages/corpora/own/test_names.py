"""A name in Unicode's NFC and in its NFD, as file systems of Macs have it, is one name."""

import json
from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pytest

from pipeline.files.storage import as_path
from stages.corpora import corpus_of as of_section
from stages.corpora import load
from stages.corpora.own.text_files import AskCorpus
from stages.read.imported_answers import read_predictions
from tests.support.texts.loading import asked, corpus_of, details, loaded

BOOK = "Łódź/café Zoë"
LINE = "Zoe\u0308 sold the cafe\u0301 in Malmo\u0308."
Form = Callable[[str], str]


def nfc(text: str) -> str:
    return normalize("NFC", text)


def nfd(text: str) -> str:
    return normalize("NFD", text)


def placed(folder: Path, name: str, text: str = LINE) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("of_file", [nfc, nfd])
@pytest.mark.parametrize("of_id", [nfc, nfd])
def test_questions_name_files(tmp_path: Path, of_file: Form, of_id: Form) -> None:
    placed(tmp_path, f"{of_file(BOOK)}.txt")
    placed(tmp_path, "questions.csv", f"document_id,question\n{of_id(BOOK)},Who sold?\n")
    corpus = loaded(tmp_path, "text")
    assert [item.document.document_id for item in corpus] == [nfc(BOOK)]
    assert [question.problem for question in asked(corpus)] == [None]


def test_two_files_of_one_name(tmp_path: Path) -> None:
    """Where suffixes tell them apart these are part of the ids; else one of the two is read."""
    for name in (nfc("é.txt"), nfd("é.md"), nfc("ö.txt"), nfd("ö.txt")):
        placed(tmp_path, name)
    corpus = loaded(tmp_path, "text")
    read = [item.document.document_id for item in corpus if not item.document.problem]
    assert sorted(read) == ["é.md", "é.txt", "ö.txt"]
    assert [detail.partition(";")[0] for detail in details(corpus)] == [
        "ö.txt: its document_id would be that of ö.txt"
    ]


@pytest.mark.parametrize("form", [nfc, nfd])
def test_ids_in_rows(tmp_path: Path, form: Form) -> None:
    rows = [{"document_id": form(name), "text": LINE} for name in ("é", "ö")]
    placed(tmp_path, "documents.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    question = {"document_id": "é", "question_id": form("ü"), "question": "Who?"}
    placed(tmp_path, "questions.jsonl", json.dumps(question))
    corpus = loaded(tmp_path, "tables")
    assert [item.document.document_id for item in corpus] == ["é", "ö"]
    assert [(one.document_id, one.question_id) for one in asked(corpus)] == [("é", "ü")]
    both = [{"document_id": other("é"), "text": other.__name__} for other in (nfc, nfd)]
    placed(tmp_path, "documents.jsonl", "".join(f"{json.dumps(row)}\n" for row in both))
    assert [item.document.problem for item in loaded(tmp_path, "tables")] == [None, "bad_input"]
    file = placed(tmp_path, "given.jsonl", json.dumps({"question_id": form("ü"), "answer": "Zoe"}))
    assert read_predictions(str(file)) == {"ü": "Zoe"}


@pytest.mark.parametrize(("on_disk", "named"), [(nfc, nfd), (nfd, nfc), (nfd, nfd)])
def test_a_path_leads_to_what_is_there(tmp_path: Path, on_disk: Form, named: Form) -> None:
    file = placed(tmp_path, f"{on_disk(BOOK)}.txt")
    assert as_path(tmp_path / f"{named(BOOK)}.txt").read_text() == LINE
    new = tmp_path / named("Łódź/new é")
    assert as_path(new) == file.parent / new.name
    section = corpus_of(tmp_path, "text").model_dump(mode="json")
    paths = [str(tmp_path / f"{form(BOOK)}.txt") for form in (nfc, nfd)]
    corpus = of_section({**section, "format": "asked", "paths": paths, "question": "Who?"})
    assert isinstance(corpus, AskCorpus) and corpus.named_files() == {"café Zoë": "café Zoë.txt"}
    assert len([*load(corpus)]) == 1
