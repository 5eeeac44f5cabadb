"""A folder of *.txt files, or one text file of any name; questions.jsonl in the folder.

A document's id and title are its file's name without the suffix. The questions are read as
question_file.py describes; a single file has none.
"""

from collections.abc import Iterator
from typing import Literal

from upath import UPath

from pipeline.rows import Document
from stages.corpora.checks import BadInputError, without_lone_surrogates
from stages.corpora.corpus import FileCorpus
from stages.corpora.files import files_of, is_there, rows_of, stem
from stages.corpora.ids import Ids
from stages.corpora.loaded import Loaded, bad_document
from stages.corpora.opening import read_whole
from stages.corpora.question_file import QuestionFile
from stages.corpora.row import Row
from stages.corpora.stories import decoded


class TextCorpus(FileCorpus):
    """A folder of text files, or one text file."""

    format: Literal["text"]

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per file, sorted by name; subfolders are not read.

        bad_input: a file without a word, that cannot be opened, or whose name without the suffix is
        that of an earlier file (a.txt and a.txt.gz). Raises UsageError where there is no text, or
        where questions.jsonl holds no question.
        """
        files = files_of(self.path, "*.txt")
        asked = self.path / "questions.jsonl"
        questions = QuestionFile(rows_of([asked]) if is_there(asked) else ())
        ids = Ids()
        for file in files:
            document = _document(self, file, ids)
            num_chars = None if document.problem else len(document.text)
            yield Loaded(document, questions.take(document.document_id, num_chars))
        yield from questions.take_rest(ids)


def _document(corpus: FileCorpus, file: UPath, ids: Ids) -> Document:
    name, document_id = (without_lone_surrogates(part) for part in (file.name, stem(file)))
    whole = Row(file, 1, None)
    first = ids.claim(document_id, whole)
    if first is not None:
        wrong = f"its document_id would be that of {first.removesuffix(':1')}; rename or delete it"
        return bad_document(ids.of_place(whole), f"{name}: {wrong}")
    try:
        return corpus.document(document_id, decoded(read_whole(file)), title=document_id)
    except BadInputError as wrong_text:
        return bad_document(document_id, f"{name}: {wrong_text}")
    except OSError as error:
        return bad_document(document_id, f"{name}: {error.strerror}; fix or delete it")
