"""Folders of a user's own documents: what is read, what it is called, what is left out, and which
texts are extracted again."""

import gzip
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from upath import UPath

from jobs.graph.preparation import load_corpus
from jobs.graph.resolved_run import read_run
from pipeline.core.errors import UsageError
from pipeline.store import Shards
from pipeline.work.units import Committed
from stages.corpora import Loaded, load
from stages.corpora import corpus_of as of_section
from stages.corpora.own import text_files
from stages.corpora.own.text_files import text_of_file
from stages.extract.extracted import EXTRACTORS, Extracted
from stages.extract.isolated import Extractor
from stages.read.imported_answers import read_predictions
from tests.support.texts.documents import epub, pdf, scan, word
from tests.support.texts.loading import asked, corpus_of, details, loaded, written

LINE = "The keeper climbed the tower."
# A name in Unicode's NFC and in its NFD, as file systems of Macs have it, is one name.
nfc, nfd = partial(normalize, "NFC"), partial(normalize, "NFD")
FORMS = (nfc, nfd)
Form = Callable[[str], str]
SUFFIXED = ("paper.md", "paper.txt", "paper.md.txt", "paper.txt.txt")


def placed(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def read(folder: Path, files: Mapping[str, str | bytes]) -> list[Loaded]:
    return loaded(placed(folder, files), "text")


def texts(corpus: list[Loaded]) -> dict[str, str]:
    return {
        i.document.document_id: i.document.text for i in corpus if not i.document.why_unusable()
    }


def left_out(corpus: list[Loaded]) -> dict[str, str | None]:
    return {i.document.document_id: i.document.detail for i in corpus if i.document.skipped}


def test_every_kind_of_document_in_folders_and_sub_folders(tmp_path: Path) -> None:
    corpus = read(tmp_path, {
        "a.TXT": LINE, "b.md": f"# Tower\n\n{LINE}", "deep/er/c.PDF": pdf([LINE]),
        "d.epub": epub({"a.xhtml": f"<p>{LINE}</p>"}), "deep/e.docx": word(LINE),
        "f.html": f"<p>{LINE}</p>", "g.htm.gz": gzip.compress(f"<p>{LINE}".encode()),
        "h.markdown": LINE, "i.txt.gz": gzip.compress(LINE.encode()),
        "j.pdf": pdf([LINE], [], ["Two."], []),
    })  # fmt: skip
    assert texts(corpus) == {
        **dict.fromkeys(("a", "d", "deep/e", "deep/er/c", "f", "g", "h", "i"), LINE),
        "b": f"# Tower\n\n{LINE}", "j": f"{LINE}\n\nTwo.",
    }  # fmt: skip
    missing = json.loads(corpus[-1].document.metadata)
    assert missing == {"missing": "no text in 2 of 4 pages (2, 4)"}
    for name in ("a.TXT", "g.htm.gz"):
        assert [*texts(loaded(tmp_path / name, "text")).values()] == [LINE]


@pytest.mark.parametrize(
    ("content", "text", "metadata"),
    [
        ("---\ntitle: The Tower\ntags: [oil, sea]\ndate: 1893-05-01\n1: x\n---\n\n# Tower\n",
         "# Tower\n",
         {"title": "The Tower", "tags": ["oil", "sea"], "date": "1893-05-01", "1": "x"}),
        ("---\na: {1: &a [x], 2: *a}\n...\nText", "Text", {"a": {"1": ["x"], "2": ["x"]}}),
        *((text, text, {}) for text in (
            "# Tower\n", "---\na: [\n---\nText", "---\na: 1\nand no end", "---\n- a\n---\nText",
            "---\n2024-01-01: x\n---\nText", "---\na: &a [*a]\n---\nText",
            "---\na: !!python/object:os.system x\n---\nText", "---\n---\nText")),
    ],
)  # fmt: skip
def test_the_front_matter_of_markdown_is_its_metadata(
    tmp_path: Path, content: str, text: str, metadata: dict[str, Any]
) -> None:
    document, plain = (
        item.document for item in read(tmp_path, {"a.md": content, "b.txt": content})
    )
    assert (document.text, json.loads(document.metadata)) == (text, metadata)
    assert (plain.text, plain.metadata) == (content, "{}")


def test_what_is_no_document_is_skipped_and_says_why(tmp_path: Path) -> None:
    placed(tmp_path, {
        "a.txt": LINE, "cover.jpg": b"\xff\xd8", "notes": "x", ".DS_Store": "x", ".git/a.txt": "x",
        "deep/table.xlsx": "x",
    })  # fmt: skip
    (tmp_path / "deep" / "up").symlink_to(tmp_path)
    outside = placed(tmp_path.with_name("outside"), {"o.txt": "Out."})
    (tmp_path / "linked").symlink_to(outside)
    (tmp_path / "twice").symlink_to(outside)
    (tmp_path / "zz").symlink_to(tmp_path.parent)
    corpus = loaded(tmp_path, "text")
    assert texts(corpus) == {"a": LINE, "linked/o": "Out."}
    said = left_out(corpus)
    assert {*said} == {
        "cover.jpg", "notes", ".DS_Store", ".git", "deep/table.xlsx", "deep/up", "twice",
        "zz",
    }  # fmt: skip
    for name in ("deep/up", "twice", "zz"):
        assert (said[name] or "").startswith(f"{name}: a link to a folder that is read under")
    assert said[".git"] == ".git: hidden; rename it to have it read"
    assert (said["cover.jpg"] or "").startswith("cover.jpg: none of .txt .md")


# What is in a folder, the texts that are read by their ids, and the files that are left out.
FOLDERS: dict[str, tuple[dict[str, str | bytes], dict[str, str], list[str]]] = {
    "a warehouse's own folders are not read": (
        {"a.txt": "A", "gistmill.json": "{}", "runs/n/report.md": "# n", "x/runs/b.txt": "B",
         "y/gistmill.json": "{}", "y/steps/s.md": "s"},
        {"a": "A", "x/runs/b": "B"}, ["gistmill.json: its", "y/gistmill.json: its"]),
    "documents of one name keep their suffix": (
        {"a.pdf": pdf(["Pdf."]), "a.txt": "A", "b.txt": "B", "sub/a.txt": "Below."},
        {"a.pdf": "Pdf.", "a.txt": "A", "b": "B", "sub/a": "Below."}, []),
    "a kept suffix is no other document's name": (
        {name: name for name in SUFFIXED}, {name: name for name in SUFFIXED}, []),
    # A file without a suffix may be a folder's Makefile, or an older copy.
    "what is left out takes no name of a document": (
        {"tower": "x", "tower.txt": "T"}, {"tower": "T"}, ["tower: none of"]),
    "of two files of one name, which Macs store in NFD, one is read": (
        {nfc("é.txt"): "1", nfd("é.md"): "2", nfc("ö.txt"): "3", nfd("ö.txt"): "3"},
        {"é.txt": "1", "é.md": "2", "ö.txt": "3"},
        ["ö.txt: its document_id would be that of ö.txt"]),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLDERS)
def test_names(tmp_path: Path, case: str) -> None:
    files, expected, wrong = FOLDERS[case]
    corpus = read(tmp_path, files)
    assert texts(corpus) == expected
    for detail, words in zip(details(corpus), wrong, strict=True):
        assert detail.startswith(words)


def test_of_very_many_files_that_are_left_out_the_first_are_named(tmp_path: Path) -> None:
    said = left_out(read(tmp_path, {"a.txt": "A", **{f"x{n:03}.js": "x" for n in range(103)}}))
    assert [*said] == [*(f"x{n:03}.js" for n in range(100)), "(others)"]
    assert "3 more that are left out (x100.js, x101.js, x102.js ...); " in (said["(others)"] or "")


@pytest.mark.parametrize(
    ("files", "name", "says"),
    [
        ({"scan.pdf": scan(), "x.jpg": "x"}, "", "no document in it can be read: scan.pdf: no te"),
        ({"x.pdf": "x"}, "x.pdf", "x.pdf: no document in it can be read: x.pdf: damaged"),
        ({"x.jpg": "x", "questions.csv": "document_id,question\na,b\n"}, "",
         "; files of other kinds: 1 (x.jpg); name another"),
    ],
)  # fmt: skip
def test_a_folder_in_which_nothing_can_be_read(
    tmp_path: Path, files: dict[str, str | bytes], name: str, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        loaded(placed(tmp_path, files) / name, "text")
    assert says in str(caught.value)


QUESTIONS = """\ufeffdocument_id;question;references;options;answer_index;page
a;Who climbed?;The keeper;;;3
a.txt;What, exactly?;"[""Oil"", ""Lamp oil""]";;;
sub/b.pdf;Which?;;Sand | Oil;1;
nobody;Who?;;;;
"""


def test_questions_in_csv_name_documents_by_id_or_file(tmp_path: Path) -> None:
    placed(tmp_path, {"a.txt": LINE, "sub/b.pdf": pdf([LINE]), "questions.csv": QUESTIONS})
    first, second, third, lost = asked(loaded(tmp_path, "text"))
    assert (first.document_id, first.references, json.loads(first.metadata)) == (
        "a", ("The keeper",), {"page": "3"},
    )  # fmt: skip
    assert (second.document_id, second.references) == ("a", ("Oil", "Lamp oil"))
    assert (third.document_id, third.options, third.answer_index) == ("sub/b", ("Sand", "Oil"), 1)
    assert (lost.problem, lost.document_id) == ("bad_input", "nobody")
    with pytest.raises(UsageError, match=r"both questions\.jsonl and questions\.csv; keep one"):
        read(tmp_path, {"questions.jsonl": "{}"})
    (tmp_path / "questions.jsonl").unlink()
    with pytest.raises(UsageError, match=r"questions\.csv: no row has a document_id; add it"):
        read(tmp_path, {"questions.csv": "document,question\na,Who?\n"})


def test_files_that_are_asked_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of one name are called by their paths; one is asked once, however it is written. What is
    not asked is counted: the questions of corpus=text, too."""
    placed(tmp_path, {"a/x.txt": "A.", "b/x.txt": "B.", "b/y.pdf": scan(), "z.txt": "Z."})
    paths = [str(tmp_path / name) for name in ("a/x.txt", "b", "z.txt", "b/x.txt")]
    section = corpus_of(tmp_path / "a", "text").model_dump(mode="json")
    asked_of = {"format": "asked", "paths": paths, "question": "Who?"}
    corpus = list(load(of_section({**section, **asked_of})))
    x = str(tmp_path / "a" / "x"), str(tmp_path / "b" / "x")
    assert texts(corpus) == {x[0]: "A.", x[1]: "B.", "z": "Z."}
    questions = asked(corpus)
    assert [question.document_id for question in questions] == [*x, "z"]
    assert {question.question for question in questions} == {"Who?"}
    assert len({question.question_id for question in questions}) == 3
    assert [i.document.document_id for i in corpus if i.document.problem] == ["y"]
    placed(tmp_path, {"a/questions.csv": "document_id,question\nx,Who?\n"})
    monkeypatch.chdir(tmp_path / "a")
    paths = ["x.txt", str(tmp_path / "a" / "x.txt"), "../a/x.txt", "../a"]
    corpus = list(load(of_section({**section, **asked_of, "paths": paths})))
    assert (texts(corpus), [*left_out(corpus)]) == ({"x": "A."}, ["questions.csv"])


def test_what_is_said_of_a_folder(tmp_path: Path) -> None:
    """Lines on standard error: what was not read, read in part, or bad; and costs no other."""
    placed(tmp_path / "books", {
        "a.txt": LINE, "b.pdf": pdf([LINE], []), "c.pdf": b"x",
        "d.txt": "zwölf Löwen".encode("cp1252"), "e.txt": "zwölf ".encode() + b"\x96",
        "f.txt": bytes(range(128, 256)), "scan.pdf": scan(2), "torn.epub": "PK\x03\x04",
        "empty.docx": "", "locked.pdf": pdf([LINE], password="x"), "nothing.html": "<p> </p>",
        "picture.html": b"\x89PNG\r\n",
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
    assert len(keys) == 34
    assert said[0].startswith("not read: 00.jpg: none of ") and len(said) == 20 + 1 + 1 + 3 + 8
    assert said[20] == "not read: and 2 more; their rows in documents and questions say why"
    assert said[21] == "read in part: b.pdf: no text in 1 of 2 pages (2)"
    notes = sorted(line for line in said if line.startswith("in doubt: "))
    assert [line.split(": ")[1] for line in notes] == ["d.txt", "e.txt", "questions.csv"]
    assert all(" read as cp1252; " in line for line in (notes[0], notes[2]))
    assert " U+FFFD: 1; " in notes[1]
    bad = [line for line in said if line.startswith("bad_input: ")]
    assert [line.split(": ")[1] for line in bad] == [
        "c.pdf", "empty.docx", "f.txt", "locked.pdf", "nothing.html", "picture.html", "scan.pdf",
        "torn.epub",
    ]  # fmt: skip
    assert all("; " in line for line in bad)


def test_a_folder_that_may_not_be_listed_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """root may list every folder, so the call is refused instead."""
    placed(tmp_path, {"a.txt": LINE, "z/c.txt": "x"})
    local = type(UPath(tmp_path))
    allowed = local.iterdir

    def forbidden(file: Any) -> Any:
        if file.name == "z":
            raise PermissionError(13, "Permission denied")
        return allowed(file)

    monkeypatch.setattr(local, "iterdir", forbidden)
    corpus = loaded(tmp_path, "text")
    assert texts(corpus) == {"a": LINE}
    assert details(corpus) == ["z: Permission denied; fix or delete it"]


@pytest.mark.parametrize("on_disk", FORMS)
@pytest.mark.parametrize("named", FORMS)
def test_files_and_ids_are_found_by_either_form_of_their_names(
    tmp_path: Path, on_disk: Form, named: Form
) -> None:
    name = "Łódź/café Zoë"
    questions = f"document_id,question\n{named(name)},Who sold?\n"
    corpus = read(tmp_path / "files", {f"{on_disk(name)}.txt": LINE, "questions.csv": questions})
    assert [item.document.document_id for item in corpus] == [name]
    assert [question.problem for question in asked(corpus)] == [None]
    rows = [{"document_id": on_disk(name), "text": LINE} for name in ("é", "ö")]
    written(tmp_path / "documents.jsonl", *rows)
    question = {"document_id": "é", "question_id": named("ü"), "question": "Who?"}
    written(tmp_path / "questions.jsonl", question)
    corpus = loaded(tmp_path, "tables")
    assert [item.document.document_id for item in corpus] == ["é", "ö"]
    assert [(q.document_id, q.question_id) for q in asked(corpus)] == [("é", "ü")]
    written(tmp_path / "documents.jsonl", *({"document_id": of("é"), "text": "x"} for of in FORMS))
    assert [item.document.problem for item in loaded(tmp_path, "tables")] == [None, "bad_input"]
    file = written(tmp_path / "given.jsonl", {"question_id": named("ü"), "answer": "Zoe"})
    assert read_predictions(str(file)) == {"ü": "Zoe"}


@pytest.mark.parametrize("change", ["name", "content", "version", "libraries", "plugin", "damage"])
def test_a_file_is_extracted_once_for_its_content_and_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    kinds: list[str] = []

    def extract(_: Extractor, kind: str, content: bytes) -> Extracted:
        kinds.append(kind)
        return EXTRACTORS[kind](content)

    monkeypatch.setattr(Extractor, "extract", extract)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = UPath(placed(tmp_path, {"a.epub": epub({"a.xhtml": f"<p>{LINE}</p>"})}) / "a.epub")
    assert text_of_file(file, Extractor()) == Extracted(LINE)
    cache = tmp_path / "cache" / "gistmill" / "texts"
    (entry,) = cache.iterdir()
    if change == "name":
        file = file.rename(file.parent / "other.epub")
    elif change == "content":
        file.write_bytes(epub({"a.xhtml": f"<h1></h1><p>{LINE}</p>"}))
    elif change == "version":
        monkeypatch.setattr(text_files, "_VERSION", 0)
    elif change == "libraries":
        monkeypatch.setattr(text_files, "_versions", list)
    elif change == "plugin":
        monkeypatch.setitem(EXTRACTORS, "epub", lambda content: Extracted(LINE))
    else:
        entry.write_bytes(entry.read_bytes()[:-9])
    assert text_of_file(file, Extractor()) == Extracted(LINE)
    assert kinds == ["epub"] * (1 if change == "name" else 2)
    assert cache.stat().st_mode & 0o077 == 0, "nobody else may read it"
