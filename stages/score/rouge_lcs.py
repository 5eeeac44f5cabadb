"""ROUGE-L and ROUGE-Lsum of tokens, with rouge-score's values to the last digit.

The package fills a table of reference x answer tokens in Python. Here a row of it is one integer
(Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): bit j is 0 where the row's value
grows at the answer's token j. Knows nothing of sentences' borders or stems.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from stages.text.words import words_in_common

Tokens = Sequence[str]


def rouge_l(reference: Tokens, answer: Tokens) -> float:
    """The F-measure, 0-1, of the longest common subsequence."""
    return _fmeasure(words_in_common(reference, answer), len(reference), len(answer))


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
    the carry of the sentence below ends, so that one operation does all sentences.

    A prefix of a sentence is the bit after it: `ends` are the whole sentences.
    """

    at: dict[str, int]  # the bits of a token
    ones: int
    ends: int
    longest: int  # sentence, in tokens

    @classmethod
    def of(cls, sentences: Sequence[Tokens]) -> "_Answer":
        at: dict[str, int] = defaultdict(int)
        ones = ends = start = 0
        for sentence in sentences:
            for place, token in enumerate(sentence, start):
                at[token] |= 1 << place
            ones |= ((1 << len(sentence)) - 1) << start
            start += len(sentence) + 1
            ends |= 1 << (start - 1)
        return cls(at, ones, ends, max(map(len, sentences), default=0))

    def after(self, row: int, token: str) -> int:
        """The row after `row` and a token of the reference."""
        both = row & self.at.get(token, 0)
        return ((row + both) | (row - both)) & self.ones

    def union(self, reference: Tokens) -> set[int]:
        """The indexes of the reference's tokens in a longest common subsequence with any of the
        answer's sentences, which is the one that rouge-score reads out.

        The table is read backwards from its last corner, for all sentences at once: a token is
        taken where the prefix that is left ends with it, or has less in common without it.
        """
        grown, left, taken = self._grown(reference), self.ends, set[int]()
        for index in reversed(range(len(reference))):
            at = self.at.get(reference[index], 0)
            if took := left & (at << 1 | grown[index]):
                taken.add(index)
                left ^= took | self._last(at, took)
        return taken

    def _grown(self, reference: Tokens) -> list[int]:
        """For each of the reference's tokens the prefixes that have one more in common with it:
        those to which the addition carries."""
        row, grown = self.ones, list[int]()
        for token in reference:
            both = row & self.at.get(token, 0)
            grown.append((row + both) ^ row ^ both)
            row = self.after(row, token)
        return grown

    def _last(self, at: int, prefixes: int) -> int:
        """The last of the bits `at` in each of the prefixes, which all have one.

        From its end a prefix is searched in steps that double, past bits that are not of `at`.
        """
        reached, others, step = prefixes >> 1, (self.ones & ~at) >> 1, 1
        while step < self.longest:
            reached |= others & (reached >> step)
            others &= others >> step
            step *= 2
        return reached & at
