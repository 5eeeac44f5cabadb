"""A folder of *.txt files, or one text file of any name; questions.jsonl in the folder.

A document's id and title are its file's name without the suffix. For the questions see
questions.py; a single file has none.
"""

import codecs
from collections.abc import Iterator
from pathlib import Path

from pipeline.records import Document
from stages.corpora.checks import BadInputError, whole_text
from stages.corpora.corpus import Corpus
from stages.corpora.loaded import Loaded, MadeIds, bad_document, document_of
from stages.corpora.questions import QuestionFile
from stages.corpora.rows import files_of, rows_of


def load_text(corpus: Corpus) -> Iterator[Loaded]:
    """One Loaded a file, sorted by name; subfolders are not read.

    bad_input: a file without a word or that cannot be opened. Raises UsageError where there is
    no text, or questions.jsonl holds no question.
    """
    files = files_of(corpus.path, "*.txt")
    asked = corpus.path / "questions.jsonl"
    questions = QuestionFile(rows_of([asked]) if asked.is_file() else ())
    document_ids = MadeIds(questions.document_ids)
    for file in files:
        wanted = whole_text(file.stem)
        document = _document(corpus, file, document_ids.claim(wanted))
        num_chars = None if document.problem else len(document.text)
        yield Loaded(document, questions.take(document.document_id, num_chars))
    yield from questions.take_rest(document_ids)


def _document(corpus: Corpus, file: Path, document_id: str) -> Document:
    name = whole_text(file.name)
    try:
        return document_of(corpus, document_id, decoded(file.read_bytes()), title=document_id)
    except BadInputError as wrong:
        return bad_document(document_id, f"{name}: {wrong}")
    except OSError as error:
        return bad_document(document_id, f"{name}: {error.strerror}; mend or delete it")


def decoded(content: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 if it says so, or else Latin-1 (older Gutenberg).

    Lines end in a newline; byte order mark and NULs are dropped.
    """
    utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if utf_16 else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
