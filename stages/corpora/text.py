"""A folder of *.txt files, or one text file of any name; questions.jsonl in the folder.

A document's id and title are its file's name without the suffix. For the questions see
questions.py; a single file has none.
"""

from collections.abc import Iterator
from typing import Literal

from upath import UPath

from pipeline.rows import Document
from stages.corpora.checks import BadInputError, whole_text
from stages.corpora.corpus import FileCorpus
from stages.corpora.loaded import Loaded, MadeIds, bad_document, document_of
from stages.corpora.questions import QuestionFile
from stages.corpora.row import stem
from stages.corpora.rows import files_of, rows_of
from stages.corpora.stories import decoded


class TextCorpus(FileCorpus):
    """A folder of texts, or a text."""

    format: Literal["text"]

    def load(self) -> Iterator[Loaded]:
        """One Loaded a file, sorted by name; subfolders are not read.

        bad_input: a file without a word or that cannot be opened. Raises UsageError where there is
        no text, or questions.jsonl holds no question.
        """
        files = files_of(self.path, "*.txt")
        asked = self.path / "questions.jsonl"
        questions = QuestionFile(rows_of([asked]) if asked.is_file() else ())
        document_ids = MadeIds(questions.document_ids)
        for file in files:
            wanted = whole_text(stem(file))
            document = _document(self, file, document_ids.claim(wanted))
            num_chars = None if document.problem else len(document.text)
            yield Loaded(document, questions.take(document.document_id, num_chars))
        yield from questions.take_rest(document_ids)


def _document(corpus: FileCorpus, file: UPath, document_id: str) -> Document:
    name = whole_text(file.name)
    try:
        return document_of(corpus, document_id, decoded(file.read_bytes()), title=document_id)
    except BadInputError as wrong:
        return bad_document(document_id, f"{name}: {wrong}")
    except OSError as error:
        return bad_document(document_id, f"{name}: {error.strerror}; mend or delete it")
