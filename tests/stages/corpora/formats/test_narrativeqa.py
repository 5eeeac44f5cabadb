"""NarrativeQA: the real files against a naive reader, then what its files get wrong."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document
from tests.support.texts.loading import DATA, asked, bad, details, loaded
from tests.support.texts.paper_corpora import NARRATIVEQA, QAPS

REAL = DATA / "narrativeqa"
STORY = "The mill stood by the river. " * 20


def rows(name: str) -> list[list[str]]:
    """The records of a real csv file but the header; the csv module by itself."""
    content = (REAL / name).read_bytes().decode("utf-8")
    return [row for row in csv.reader(content.splitlines()) if row][1:]


def naive_story(document_id: str) -> str:
    """The lines between Gutenberg's marks."""
    content = (REAL / "tmp" / f"{document_id}.content").read_bytes()
    lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    ends = ("*** END OF TH", "End of Project Gutenberg", "End of the Project Gutenberg")
    first = next(i for i, line in enumerate(lines) if line.startswith("*** START OF TH"))
    last = next(i for i, line in enumerate(lines) if line.lstrip().startswith(ends))
    return "\n".join(lines[first + 1 : last]).strip()


def written(folder: Path, documents: Sequence[str], qaps: Sequence[str]) -> Path:
    """The corpus of these csv lines under their headers."""
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "documents.csv").write_text(
        "\r\n".join([",".join(NARRATIVEQA), *documents, ""]), newline=""
    )
    (folder / "qaps.csv").write_text("\r\n".join([",".join(QAPS), *qaps, ""]), newline="")
    return folder


def one(folder: Path, story: bytes, start: str = "", end: str = "", qa: Sequence[str] = ()) -> Path:
    """A corpus of one book, `d`, whose file holds `story`."""
    size = len(story)
    written(folder, [f"d,test,gutenberg,u,{size},w,T,7,{start},{end}"], qa or ["d,test,Q?,a,b,,,"])
    (folder / "tmp" / "d.content").write_bytes(story)
    return folder


def read(folder: Path) -> tuple[Document, str]:
    """The one document, and by what it was cut."""
    [item] = loaded(folder, "narrativeqa")
    return item.document, json.loads(item.document.metadata)["cut_by"]


def test_the_real_stories_are_the_lines_between_gutenbergs_marks() -> None:
    corpus = loaded(REAL, "narrativeqa", kind="all")
    native = [(row[0], row[6]) for row in rows("documents.csv")]
    assert [(item.document.document_id, item.document.title) for item in corpus] == native
    told = [item for item in corpus if not item.document.skipped]
    assert (len(corpus), len(told), details(corpus)) == (1572, 2, [])
    assert all(item.questions == () for item in corpus if item.document.skipped)
    for item in told:
        story = naive_story(item.document.document_id)
        assert item.document.text == story
        assert item.document.num_words == len(story.split())
        blocks = re.split(r"\n[ \t]*\n\s*", story)
        assert item.document.num_paragraphs == sum(bool(block.strip()) for block in blocks)
        assert json.loads(item.document.metadata)["cut_by"] == "gutenberg"
        assert item.document.detail is None
    questions = asked(told)
    assert len(questions) == 60 and {len(q.references) for q in questions} == {2}
    here = {item.document.document_id for item in told}
    naive = {(row[0], row[2].strip()) for row in rows("qaps.csv") if row[0] in here}
    assert {(q.document_id, q.question) for q in questions} == naive


@pytest.mark.parametrize("kind", ["gutenberg", "movie"])
@pytest.mark.parametrize("split", [None, "valid"])
def test_kind_and_split_choose_documents(kind: str, split: str | None) -> None:
    corpus = loaded(REAL, "narrativeqa", kind=kind, split=split)
    chosen = [row[0] for row in rows("documents.csv") if row[2] == kind and split in (None, row[1])]
    assert [item.document.document_id for item in corpus] == chosen


SMALL_PRINT = "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*"
AUSTRALIA = """Project Gutenberg Australia

Title: T
* A Project Gutenberg of Australia eBook *

Project Gutenberg of Australia eBooks are created from printed editions

To contact Project Gutenberg of Australia go to {}http://gutenberg.net.au"""
GERMANY = """Dieses Buch wurde uns vom Projekt Gutenberg-DE zur Verfügung gestellt. Das Projekt
ist unter der Internet-Adresse http://gutenberg.spiegel.de/ erreichbar."""
# The line that ends the head, and the line that begins the licence.
FRAMES = [
    ("*** START OF THE PROJECT GUTENBERG EBOOK A LONG\nTITLE ***",
     "*** END OF THE PROJECT GUTENBERG EBOOK A LONG TITLE ***"),
    ("***START OF THIS PROJECT GUTENBERG ETEXT T***", "*** END OF THIS PROJECT GUTENBERG ETEXT T"),
    ("*** START OF THE COPYRIGHTED PROJECT GUTENBERG EBOOK T ***",
     "*** END OF THE COPYRIGHTED PROJECT GUTENBERG EBOOK T ***"),
    ("*** START OF THIS PROJECT GUTENBERG-tm EBOOK T ***",
     "*** END OF THIS PROJECT GUTENBERG-tm EBOOK T ***"),
    ("*** START OF THE PROJECT GUTENBERG™ EBOOK T ***",
     "*** END OF THE PROJECT GUTENBERG(TM) EBOOK T ***"),
    ("START OF THE PROJECT GUTENBERG EBOOK T", "END OF THE PROJECT GUTENBERG EBOOK T"),
    ("Start of the Project Gutenberg eBook, T", "End of Project Gutenberg's T, by Ann"),
    ("*** START OF THE PROJECT\nGUTENBERG EBOOK T ***", "End of\nthe Project Gutenberg EBook"),
    ("*** START OF THE PROJECT GUTENBERG EBOOK T", "*** END OF THE PROJECT GUTENBERG EBOOK T"),
    ("Beginning of this Project Gutenberg Etext", "This is the end of the Project Gutenberg Etext"),
    (SMALL_PRINT, "End of this Project Gutenberg Etext of T"),
    ("*END THE SMALL PRINT! FOR PUBLIC DOMAIN EBOOKS*Ver.02/11/02*END*",
     "End of The Project Gutenberg Etext of T"),
    ("*END*THE SMALL PRINT! FOR COPYRIGHT PROTECTED\nETEXTS*END*",
     "**This is a COPYRIGHTED Project Gutenberg Etext, Details Above**"),
    (f"*** START OF THE PROJECT GUTENBERG EBOOK T ***\nThe Project Gutenberg Etext of T\n\n"
     f"{SMALL_PRINT}", "*** END OF THE PROJECT GUTENBERG EBOOK T ***"),
    (f"{SMALL_PRINT}\n\n{GERMANY}", "Ende dieses Projekt Gutenberg Etextes T"),
    ("*** BEGINN DES PROJEKT GUTENBERG EBOOKS T ***", "*** ENDE DES PROJEKT GUTENBERG EBOOKS"),
    (SMALL_PRINT, 'Ende dieses Etextes "T"'),
    ("*** START OF THIS PROJECT GUTENBERG EBOOK T ***", "Fin de Project Gutenberg's T, by Ann"),
    ("*** DÉBUT DU LIVRE DU PROJET GUTENBERG T ***", "Fin de ce livre du Projet Gutenberg T"),
    ("*** START OF THE PROJECT GUTENBERG EBOOK T ***", "*** START: FULL LICENSE ***"),
    (AUSTRALIA.format(""), "Project Gutenberg Australia"),
    (AUSTRALIA.format("\n"), "This site is full of FREE ebooks - Project Gutenberg Australia"),
    (AUSTRALIA.format(""), "End of this Project Gutenberg of Australia eBook"),
]  # fmt: skip
TITLE = "The Project Gutenberg EBook of T\n\nThis eBook is for the use of anyone anywhere\n\n"
LICENCE = "\nUpdated editions of Project Gutenberg-tm electronic works.\n" * 9


@pytest.mark.parametrize(("first", "last"), FRAMES)
@pytest.mark.parametrize("form", ["{}", "<html><body><pre>{}</pre></body></html>"])
def test_head_and_licence_of_every_form_are_cut(
    tmp_path: Path, first: str, last: str, form: str
) -> None:
    book = f"{TITLE}{first}\n\nProduced by Bob and the Project Gutenberg Online Team\n\n{STORY}"
    content = form.format(f"{book}\n\n{last}\n{LICENCE}")
    document, cut = read(one(tmp_path, content.encode(), "The", "works ."))
    text = f"Produced by Bob and the Project Gutenberg Online Team\n\n{STORY}"
    assert [*map(str.strip, document.text.split("\n"))] == [*map(str.strip, text.split("\n"))]
    assert (cut, document.detail) == ("gutenberg", None)


@pytest.mark.parametrize(
    ("content", "start", "end", "text", "cut"),  # the text that is read; None: the story and more
    [
        (f"by Ann\n{STORY}\nThe end .\nads", "The mill stood", "by the river .", STORY, "markers"),
        (f"Ann [ b ]\n{STORY}", "The mill stood", "", STORY, "markers"),
        (f"{STORY}\nadvertisement", "", "by the river .", STORY, "markers"),
        (STORY, "not there", "(.*", STORY, "nothing"),
        (f"{STORY}\nshort", "short", "", f"{STORY}\nshort", "nothing"),
        # Marks that would leave next to nothing are none.
        (f"*** START OF THE PROJECT GUTENBERG EBOOK T ***\n\n*** END OF THE PROJECT GUTENBERG "
         f"EBOOK T ***\n{STORY}", "", "", None, "nothing"),
        (f"{TITLE}\n{STORY}", "Project", "river .", None, "markers_in_part"),
        (f"{TITLE}\n{FRAMES[0][0]}\n{STORY}\n{LICENCE}", "", "", None, "gutenberg_in_part"),
        (f"{TITLE}\n{STORY}\n{FRAMES[0][1]}\n{LICENCE}", "", "", None, "gutenberg_in_part"),
    ],
)  # fmt: skip
def test_a_story_is_cut_by_markers_or_left_and_what_is_left_is_said(
    tmp_path: Path, content: str, start: str, end: str, text: str | None, cut: str
) -> None:
    document, by = read(one(tmp_path, content.encode(), start, end))
    assert (document.problem, by) == (None, cut)
    if text is None:
        assert STORY.strip() in document.text and document.detail
        assert document.detail.startswith("d.content: ") and "; " in document.detail
    else:
        assert (document.text.strip(), document.detail) == (text.strip(), None)


SCRIPT = "INT. MILL - NIGHT\n\nANN\nI don’t know – “maybe” it’s the wind…"
HEAD = '<html><head><meta http-equiv="Content-Type" content="text/html; charset={}"></head>'


@pytest.mark.parametrize(
    ("declared", "encoding", "is_guess"),
    [("iso-8859-1", "cp1252", False), ("ISO-8859-1", "utf-8", False), ("utf-8", "cp1252", True),
     ("none", "cp1252", True)],
)  # fmt: skip
def test_a_film_script_is_read_as_its_page_declares(
    tmp_path: Path, declared: str, encoding: str, is_guess: bool
) -> None:
    page = f"{HEAD.format(declared)}<body><pre>{SCRIPT}</pre></body></html>"
    document, _ = read(one(tmp_path, page.encode(encoding)))
    assert (document.text, (document.detail or "")[:11]) == (SCRIPT, "d.content: " * is_guess)


def test_a_missing_or_failed_download_is_skipped(tmp_path: Path) -> None:
    sizes = {"gone": "54078", "failed": "54078", "unsized": "", "tiny": "640", "a/../b": "640",
             "nul\0": "640"}  # fmt: skip
    lines = [f"{name},test,gutenberg,u,{size},w,T,7,," for name, size in sizes.items()]
    folder = written(tmp_path, lines, [f"{name},test,Q?,a,b,,," for name in sizes])
    for name in ("failed", "unsized"):
        (folder / "tmp" / f"{name}.content").write_bytes(b"<html>404 Not found</html>")
    (folder / "tmp" / "tiny.content").write_bytes(STORY.encode())
    corpus = loaded(folder, "narrativeqa")
    assert [item.document.document_id for item in corpus] == [*sizes]
    assert [item.document.document_id for item in corpus if not item.document.skipped] == ["tiny"]
    assert len(asked(corpus)) == 1 and details(corpus) == []


def test_stories_may_lie_elsewhere(tmp_path: Path) -> None:
    folder = one(tmp_path, STORY.encode())
    (folder / "tmp").rename(folder / "my stories")
    assert [item.document.skipped for item in loaded(folder, "narrativeqa")] == [True]
    [item] = loaded(folder, "narrativeqa", stories=str(folder / "my stories"))
    assert item.document.text.strip() == STORY.strip()


def test_questions_as_they_are_written(tmp_path: Path) -> None:
    broken = "AllSpark’s".encode().decode("latin-1")  # UTF-8 read as Latin-1
    qaps = [
        f"d,test,Where is the {broken} home?,CafÃ©,ÂµÃ,,,",
        "d,test,HOW OLD IS  KATRINA? ,18,eighteen,,,",
        "d,test,HOW OLD IS  KATRINA? ,blooming,18,,,",
        'd,test,"Who said ""no, Ann""?","""nothing""",,,,',
        "d,test,,no question,x,,,",
        "d,test,No answers?,,,,,",
        "z,test,Of no document?,a,b,,,",
        "d,test,too,many,cells,a,b,c,d,e",
        "d,test,too few",
    ]
    item, *rest = loaded(one(tmp_path, STORY.encode(), qa=qaps), "narrativeqa")
    assert [(q.question, q.references) for q in item.questions if not q.problem] == [
        ("Where is the AllSpark’s home?", ("Café", "µÃ")),
        ("HOW OLD IS  KATRINA?", ("18", "eighteen")),
        ("HOW OLD IS  KATRINA?", ("blooming", "18")),
        ('Who said "no, Ann"?', ('"nothing"',)),
        ("No answers?", ()),
    ]
    assert bad(item.questions) == ["qaps.csv:6: no `question`; add it"]
    assert [detail.split(";")[0] for detail in dict.fromkeys(details(rest))] == [
        'qaps.csv:8: no document has the document_id "z"',
        "qaps.csv:9: 10 cells, the header has 8",
        "qaps.csv:10: 3 cells, the header has 8",
    ]


@pytest.mark.parametrize("name", ["documents.csv", "qaps.csv"])
def test_a_folder_of_no_use_is_one_error(tmp_path: Path, name: str) -> None:
    folder = one(tmp_path, STORY.encode())
    (folder / name).unlink()
    with pytest.raises(UsageError, match=rf"{name}: No such file.*; set corpus\.path="):
        loaded(folder, "narrativeqa")
