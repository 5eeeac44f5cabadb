"""Metrics of answers, by name, 0-100, and the questions that each applies to.

Metric names carry the variant, because papers mean different things by "ROUGE-L" or "F1". Of
several references the best counts. Which answers are scored is decided in score.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.core.rows import Question
from stages.score import longbench_metrics
from stages.score.rouge import KINDS, is_latin, rouge, rouge_l_sum
from stages.text.languages import is_chinese, unicode_words, writing_of


def _always(question: Question) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Metric:
    """`score` of an answer to a question with references; where it does not apply there is none."""

    score: Callable[[str, Question], float]
    applies: Callable[[Question], bool] = _always


def longbench_f1(answer: str, reference: str) -> float:
    """F1 of the multisets of normalized words, as in SQuAD and LongBench (English).

    In other letters than Latin: of `unicode_words`, so every Chinese character is one.
    """
    return longbench_metrics.token_f1(_words(answer, reference), _words(reference, answer))


def squad_em(answer: str, reference: str) -> float:
    """100 where the words, normalized likewise, are those of the reference in order; else 0."""
    return 100.0 * (_words(answer, reference) == _words(reference, answer))


def _words(text: str, other: str) -> list[str]:
    return longbench_metrics.normal_words(text) if is_latin(text, other) else unicode_words(text)


def _best(
    score: Callable[[str, str], float], applies: Callable[[Question], bool] = _always
) -> Metric:
    """The best over references. ValueError without references."""
    return Metric(lambda answer, q: max(score(answer, r) for r in q.references), applies)


def _rouge(kind: str, stem: bool) -> Metric:
    return _best(lambda answer, reference: rouge(answer, reference, stem)[kind])


def _has_chinese(question: Question) -> bool:
    """An answer may be a year or a foreign name: then the question is in Chinese."""
    return is_chinese(" ".join((question.question, *question.references)))


def _has_spaces(question: Question) -> bool:
    return all(writing_of(reference) != "unspaced" for reference in question.references)


# A metric that is the geometric mean of the means of these over the questions, as SCROLLS takes it
# of ROUGE-1, -2 and -L without stems; the mean of each answer's geometric mean would be lower.
PARTS = {"scrolls_rouge": tuple(f"scrolls_{kind}" for kind in KINDS)}

_ROUGE = "{} F-measure of the package rouge-score, {}; the best of the references"
ABOUT = {  # what a paper states of them
    **{f"{kind}_stem": _ROUGE.format(kind, "Porter stems") for kind in KINDS},
    "rougeLsum": _ROUGE.format("ROUGE-L", "summary level"),
    "scrolls_rouge": "geometric mean of the means of ROUGE-1, -2, -L F without stems (SCROLLS)",
    "squad_em": "exact match after SQuAD's normalization; the best of the references",
    "longbench_f1": "F1 of words after SQuAD's normalization; the best of the references",
    "longbench_f1_zh": "LongBench's F1 of jieba's words, of Chinese alone",
    "longbench_rouge": "LongBench's ROUGE-L F of the package rouge",
    "longbench_rouge_zh": "LongBench's ROUGE-L F of jieba's words, of Chinese alone",
    "longbench": "LongBench's own score of each question's task",
}

METRICS: dict[str, Metric] = {
    **{f"{kind}_stem": _rouge(kind, stem=True) for kind in KINDS},
    "rougeLsum": _best(rouge_l_sum),
    **{f"scrolls_{kind}": _rouge(kind, stem=False) for kind in KINDS},
    "squad_em": _best(squad_em),
    "longbench_f1": _best(longbench_f1),
    "longbench_f1_zh": _best(longbench_metrics.f1_zh, _has_chinese),
    "longbench_rouge": _best(longbench_metrics.rouge, _has_spaces),
    "longbench_rouge_zh": _best(longbench_metrics.rouge_zh, _has_chinese),
    "longbench": Metric(longbench_metrics.of_task, longbench_metrics.has_task),
}
