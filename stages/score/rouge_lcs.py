"""ROUGE-L and ROUGE-Lsum of tokens, with rouge-score's values to the last digit.

The package fills a table of reference x answer tokens in Python. Here a row of it is one integer
(Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): bit j is 0 where the row's value
grows at the answer's token j. Knows nothing of sentences' borders or stems.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate

Tokens = Sequence[str]


def rouge_l(reference: Tokens, answer: Tokens) -> float:
    """The F-measure, 0-1, of the longest common subsequence."""
    own = _Answer.of([answer])
    last = reduce(own.after, reference, own.ones)
    return _fmeasure(len(answer) - last.bit_count(), len(reference), len(answer))


def rouge_l_sum(reference: Sequence[Tokens], answer: Sequence[Tokens]) -> float:
    """The F-measure, 0-1, of the union over the answer's sentences of each reference sentence's
    longest common subsequences. Of a token no more count than either text has."""
    answers = _Answer.of(answer)
    of_reference = Counter(token for sentence in reference for token in sentence)
    left = of_reference & Counter(token for sentence in answer for token in sentence)
    hits = 0
    for sentence in reference:
        for index in sorted(answers.union(sentence)):
            hits += left[sentence[index]] > 0
            left[sentence[index]] -= 1
    return _fmeasure(hits, of_reference.total(), sum(map(len, answer)))


def _fmeasure(hits: int, of_reference: int, of_answer: int) -> float:
    """In rouge-score's order of operations: another one differs in the last digit."""
    if not hits:
        return 0.0
    precision, recall = hits / of_answer, hits / of_reference
    return 2 * precision * recall / (precision + recall)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A bit for each of the answer's tokens, and one that is always 0 after each sentence: there
    the carry of the sentence below ends, so that one addition does all sentences."""

    at: dict[str, int]  # the bits of a token
    ones: int
    starts: list[int]  # the first bit of each sentence
    parts: list[int]  # as many ones as the sentence has tokens
    found: dict[str, dict[int, int]]  # of a token: the sentences with it, and its bits there

    @classmethod
    def of(cls, sentences: Sequence[Tokens]) -> "_Answer":
        made = cls(defaultdict(int), 0, [], [], defaultdict(lambda: defaultdict(int)))
        ones, start = 0, 0
        for number, sentence in enumerate(sentences):
            for place, token in enumerate(sentence):
                made.at[token] |= 1 << (start + place)
                made.found[token][number] |= 1 << place
            made.starts.append(start)
            made.parts.append((1 << len(sentence)) - 1)
            ones |= made.parts[-1] << start
            start += len(sentence) + 1
        return replace(made, ones=ones)

    def after(self, row: int, token: str) -> int:
        """The row after `row` and a token of the reference."""
        both = row & self.at.get(token, 0)
        return ((row + both) | (row - both)) & self.ones

    def union(self, reference: Tokens) -> set[int]:
        """The indexes of the reference's tokens in a longest common subsequence with any of the
        answer's sentences, which is the one that rouge-score reads out.

        The table is read backwards from its last corner: a common token is taken where what is left
        of the sentence ends with it, or has less in common without the reference's token.
        """
        rows = list(accumulate(reference, self.after, initial=self.ones))
        left, taken = [*self.parts], set[int]()
        for index in reversed(range(len(reference))):
            before, after = rows[index : index + 2]
            for number, bits in self.found.get(reference[index], {}).items():
                part, start = left[number], self.starts[number]
                if not (end := (bits & part).bit_length()):
                    continue
                if end < part.bit_length() and _num(before, start, part) == _num(
                    after, start, part
                ):
                    continue
                taken.add(index)
                left[number] = (1 << (end - 1)) - 1
        return taken


def _num(row: int, start: int, part: int) -> int:
    """The ones of the part: its tokens less what it has in common with the reference so far."""
    return (row >> start & part).bit_count()
