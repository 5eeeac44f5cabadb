"""Synthetic documents of any number and length, for tests of scale: sentences of invented words,
with planted facts that the questions ask for. Document number i depends only on the seed and on i.
"""

import math
from collections.abc import Iterator
from itertools import accumulate
from random import Random
from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from pipeline.core.rows import Question, Span
from stages.corpora.reading.corpus import Corpus, Loaded

_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
_NUM_WORDS, _NUM_SENTENCES = 3000, 4000
_SENTENCES_PER_PARAGRAPH = 6


class SyntheticCorpus(Corpus):
    """Lengths are lognormal with median `words` and sigma `skew`."""

    format: Literal["synthetic"]
    num_documents: PositiveInt
    words: PositiveInt
    skew: NonNegativeFloat  # 0: equal lengths; 1: the longest of 400 is 20 times the median
    questions: NonNegativeInt  # per document

    def load(self) -> Iterator[Loaded]:
        draw = Random(f"words {self.seed}")
        words = ["".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(_NUM_WORDS)]
        sentences = [
            " ".join(draw.choices(words, k=draw.randint(6, 20))).capitalize() + "."
            for _ in range(_NUM_SENTENCES)
        ]
        mean = sum(len(sentence.split()) for sentence in sentences) / _NUM_SENTENCES
        for number in range(self.num_documents):
            yield self._document(number, sentences, mean, words)

    def _document(
        self, number: int, sentences: list[str], mean_words: float, words: list[str]
    ) -> Loaded:
        draw = Random(f"document {self.seed} {number}")
        num_words = self.words * math.exp(self.skew * draw.gauss())
        parts = draw.choices(sentences, k=max(self.questions, round(num_words / mean_words), 1))
        facts = sorted(draw.sample(range(len(parts)), self.questions))
        names = [f"{draw.choice(words)}{number}x{n}".capitalize() for n in range(len(facts))]
        drawn = draw.choices(words, k=3 * len(facts))
        objects = [" ".join(drawn[at : at + 3]) for at in range(0, len(drawn), 3)]
        for at, name, thing in zip(facts, names, objects, strict=True):
            parts[at] = f"{name} keeps {thing} under the floor."
        wide = _SENTENCES_PER_PARAGRAPH
        text = "\n\n".join(" ".join(parts[at : at + wide]) for at in range(0, len(parts), wide))
        before = list(accumulate(map(len, parts), initial=0))  # characters, without the gaps
        document = self.document(f"s{number:06}", text)
        questions = []
        for index, (at, name, thing) in enumerate(zip(facts, names, objects, strict=True)):
            start = before[at] + at + at // wide
            question = Question(
                document_id=document.document_id,
                question_id=f"{document.document_id}q{index:04}",
                question=f"What does {name} keep under the floor?",
                references=(thing,),
                evidence=(Span(start, start + len(parts[at])),),
            )
            questions.append(question)
        return Loaded(document, tuple(questions))
