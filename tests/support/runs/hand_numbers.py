"""What the run of hand_run.py must come to, question by question, worked by hand.

Columns are the questions in the order of `ORDER`; `-` stands for no value. Gist memories hold
mill 4 + 5 + 3 = 12, tide 4 + 4 = 8, ledger 5 x 2 = 10 words; raw pages are of 20, 30, 10 words
(mill), 24, 8 (tide) and 30 each (ledger); the texts have 60, 32 and 150.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rouge_score.rouge_scorer import RougeScorer

from tests.support.runs.hand_run import QUESTIONS

ORDER = ("m1", "m2", "t1", "l1", "l2", "b1")
DOCUMENT_WORDS = (60, 60, 32, 150, 150, 0)
TYPES = ("why", "two_places", "detail", "detail", "why", None)
FREE = ("m1", "m2", "l2", "b1")


@dataclass(frozen=True)
class Worked:
    """One method. A letter or a word a question, in the order of `ORDER`."""

    answers: tuple[str | None, ...]
    problems: tuple[str | None, ...]  # of the answers
    words_read: str  # words of gists and raw text in the final context
    lookups: str  # distinct pages read; none where nothing was
    lr: str  # E exact, P partial, N none, U unscored; - not free-form
    generous_lr: str  # by the second rater
    squad_em: str
    accuracy: str
    recall: tuple[float | None, ...]
    calls: str
    tokens: str  # words of prompts and replies


NIL = None
_UP = "upstream"  # b1: its document is bad_input
WORKED = {
    # Prompts: question + 2 + a tag and the words of each passage. m1 4+2+3+12=21, m2 9+2+3+12=26,
    # t1 12+2+2+8=24, l1 8+2+5+10=25, l2 5+2+5+10=22; the reply's words are added.
    "gist_only": Worked(
        ("The great flood.", "Peter, a carpenter.", "Answer: (C)", "Answer: (B)",
         "Entry four, on salt.", NIL),
        (NIL, NIL, NIL, NIL, NIL, _UP),
        words_read="12 12 8 10 10 -",
        lookups="0 0 0 0 0 -",
        lr="E E - - P N",
        generous_lr="E P - - P N",
        squad_em="0 0 - - 0 0",
        accuracy="- - 100 100 - -",
        recall=(0, 0, 0, NIL, 0, NIL),
        calls="1 1 1 1 1 0",
        tokens="24 29 26 27 26 0",
    ),
    # m1 reads page 1: 30+4+3. m2 pages 2 and 0: 20+10+5. t1 page 0: 24+4. l1's reply cannot be
    # read: the gists. l2 page 3: 30+4x2; page 4 has no room: question 5 + 4 + 5 tags + 66 words
    # and 20 for the answer are 100, over the 95 there are.
    # Look-ups: question + 4 + tags and gists: 23, 28, 26, 27, 24, replies 4, 8, 4, 4, 5.
    # Answers: m1 4+2+3+37=46, m2 9+2+3+35=49, t1 12+2+2+28=44, l1 25, l2 5+2+5+38=50.
    "readagent_p(max_pages=2)": Worked(
        ("Flood water.", "Peter by the river.", "Answer: (F)", "Answer: (B)", "Entry four.", NIL),
        ("truncated", NIL, "out_of_range", NIL, NIL, _UP),
        words_read="37 35 28 10 38 -",
        lookups="1 2 1 0 1 -",
        lr="N U - - E N",
        generous_lr="N P - - P N",
        squad_em="0 0 - - 100 0",
        accuracy="- - 0 100 - -",
        recall=(100, 100 * 12 / 36, 0, NIL, 100, NIL),
        calls="2 2 2 2 2 0",
        tokens="75 89 76 58 81 0",
    ),
    # broke and wheel are on page 1; mill and stand on page 0; count and winter on page 1; entry
    # on all, so page 0; salt on page 3. Prompts: 4+2+1+30=37, 9+2+1+20=32, 12+2+1+8=23, 41, 38.
    "bm25(top_k=1)": Worked(
        ("The flood.", "By the river.", "C", "Answer: (A)", "Salt stands in it.", NIL),
        (NIL, NIL, NIL, NIL, NIL, _UP),
        words_read="30 20 8 30 30 -",
        lookups="1 1 1 1 1 -",
        lr="N P - - E N",
        generous_lr="E P - - P N",
        squad_em="0 0 - - 0 0",
        accuracy="- - 100 0 - -",
        recall=(100, 100 * 12 / 36, 100, NIL, 100, NIL),
        calls="1 1 1 1 1 0",
        tokens="39 35 24 43 42 0",
    ),
    # l1: 8 + 2 + 1 + 150 words and 20 for the answer are over 95: never asked. 67, 72, 47 are.
    "full_text": Worked(
        ("A flood broke it.", "Peter.", "Answer: (C)", NIL, NIL, NIL),
        (NIL, NIL, NIL, "context_overflow", "context_overflow", _UP),
        words_read="60 60 32 - - -",
        lookups="0 0 0 - - -",
        lr="E N - - N N",
        generous_lr="E P - - N N",
        squad_em="0 0 - - 0 0",
        accuracy="- - 100 0 - -",
        recall=(100, 100, 100, NIL, 0, NIL),
        calls="1 1 1 0 0 0",
        tokens="71 73 49 0 0 0",
    ),
    # Prompts of question + 2 words: 6, 11, 14, 10, 7.
    "closed_book": Worked(
        ("I do not know.", "A carpenter from the next valley.", "Perhaps the second.", NIL,
         "", NIL),
        (NIL, NIL, "unparseable", "engine_failed", "unparseable", _UP),
        words_read="0 0 0 - 0 -",
        lookups="0 0 0 - 0 -",
        lr="N E - - N N",
        generous_lr="P P - - N N",
        squad_em="0 100 - - 0 0",
        accuracy="- - 0 0 - -",
        recall=(0, 0, 0, NIL, 0, NIL),
        calls="1 1 1 1 1 0",
        tokens="10 17 17 10 7 0",
    ),
    "constant": Worked(
        ("Nothing is known.", "Nothing is known.", "Answer: (A)", "Answer: (A)",
         "Nothing is known.", NIL),
        (NIL, NIL, NIL, NIL, NIL, _UP),
        words_read="0 0 0 0 0 -",
        lookups="0 0 0 0 0 -",
        lr="N N - - N N",
        generous_lr="P P - - P N",
        squad_em="0 0 - - 0 0",
        accuracy="- - 0 0 - -",
        recall=(0, 0, 0, NIL, 0, NIL),
        calls="0 0 0 0 0 0",
        tokens="0 0 0 0 0 0",
    ),
}  # fmt: skip

Values = Sequence[float | None]


def numbers(text: str) -> list[float | None]:
    return [None if part == "-" else float(part) for part in text.split()]


def verdict_shares(letters: str, counted: str) -> list[float | None]:
    """100 for a letter among `counted`, 0 for another; none where the rater gave no verdict."""
    return [None if part in "-U" else 100.0 * (part in counted) for part in letters.split()]


def rouge1(worked: Worked) -> list[float | None]:
    """By the library, the better reference counting; an answer with a problem has 0."""
    scorer = RougeScorer(["rouge1"], use_stemmer=True)
    references = {row["question_id"]: row.get("references", []) for row in QUESTIONS}
    return [
        None if question not in FREE
        else 0.0 if problem or text is None
        else 100 * max(scorer.score(r, text)["rouge1"].fmeasure for r in references[question])
        for question, text, problem in zip(ORDER, worked.answers, worked.problems, strict=True)
    ]  # fmt: skip


def measures(worked: Worked, lr: str | None = None) -> dict[str, Values]:
    """Every measure of the report, question by question."""
    letters, read = lr or worked.lr, numbers(worked.words_read)
    of_documents = zip(read, DOCUMENT_WORDS, strict=True)
    return {
        "compression_rate": [None if n is None else 100 * (1 - n / of) for n, of in of_documents],
        "lookups": numbers(worked.lookups),
        "lr_1": verdict_shares(letters, "E"),
        "lr_2": verdict_shares(letters, "EP"),
        "rouge1_stem": rouge1(worked),
        "squad_em": numbers(worked.squad_em),
        "accuracy": numbers(worked.accuracy),
        "evidence_recall": worked.recall,
        "evidence_any_hit": [None if r is None else 100.0 * (r > 0) for r in worked.recall],
        "words_read": read,
        "length": [None if text is None else len(text.split()) for text in worked.answers],
    }


def mean(values: Values, chosen: Sequence[int]) -> float | None:
    """Over the questions at the positions `chosen` that have a value."""
    found = [value for position in chosen if (value := values[position]) is not None]
    return fmean(found) if found else None


def total(text: str, chosen: Sequence[int]) -> int:
    return sum(int(text.split()[position]) for position in chosen)
