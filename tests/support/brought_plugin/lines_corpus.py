"""A corpus of a file of lines: text, question and reference between tabs."""

from collections.abc import Iterator
from typing import Literal

from gistmill.plugin import FileCorpus, Loaded, Question


class LinesCorpus(FileCorpus):
    format: Literal["lines"]

    def load(self) -> Iterator[Loaded]:
        for number, line in enumerate(self.path.read_text().splitlines()):
            text, asked, reference = line.split("\t")
            document = self.document(f"d{number}", text)
            question = Question(
                document_id=f"d{number}",
                question_id=f"q{number}",
                question=asked,
                references=(reference,),
            )
            yield Loaded(document, (question,))
