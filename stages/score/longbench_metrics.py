"""LongBench's scores of one answer and one reference, 0-100, and the score of each of its tasks.

THUDM/LongBench 2e00731, LongBench/metrics.py and eval.py; equal to theirs with jieba 0.42.1, rouge
1.0.1 and fuzzywuzzy 0.18.0 (which uses difflib unless python-Levenshtein is installed).
"""

import difflib
import logging
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

from pipeline.core.rows import Question

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CHINESE_PUNCTUATION = str.maketrans("", "", string.punctuation + (
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
    "〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏."
))  # fmt: skip  # LongBench's list: 《 is not in it
_DEPTH = Lock()  # threads share the limit: one would reset another's
_STACK = 1_000  # calls around the package's own recursion


def f1(answer: str, reference: str) -> float:
    """F1 of the multisets of normalized English words (`qa_f1_score`)."""
    return token_f1(normal_words(answer), normal_words(reference))


def f1_zh(answer: str, reference: str) -> float:
    """F1 of the multisets of jieba's words without punctuation (`qa_f1_zh_score`)."""
    return token_f1(_chinese_words(answer), _chinese_words(reference))


def _chinese_words(text: str) -> list[str]:
    bare = ("".join(word.lower().translate(_CHINESE_PUNCTUATION).split()) for word in _jieba(text))
    return [word for word in bare if word]


def _jieba(text: str) -> list[str]:
    import jieba  # here: only Chinese needs it, and its dictionary takes half a second

    jieba.setLogLevel(logging.WARNING)
    return list(jieba.cut(text))


def rouge(answer: str, reference: str) -> float:
    """ROUGE-L by the package `rouge`: union over sentences that end in a full stop, words as sets.

    0 if a text has nothing but full stops. LongBench's score is 0, too, if a sentence is so long
    that the package runs out of stack; here it is given more stack.
    """
    from rouge import Rouge

    with _DEPTH:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _STACK + len(answer) + len(reference)))
        try:
            return float(100 * Rouge(["rouge-l"]).get_scores(answer, reference)[0]["rouge-l"]["f"])
        except ValueError:  # nothing but full stops
            return 0.0
        finally:
            sys.setrecursionlimit(before)


def rouge_zh(answer: str, reference: str) -> float:
    """`rouge` of jieba's words (`rouge_zh_score`)."""
    return rouge(" ".join(_jieba(answer)), " ".join(_jieba(reference)))


def classification(answer: str, reference: str, classes: Sequence[str]) -> float:
    """100 divided by the number of classes that the answer names, if the right one is among them.

    A class whose name is part of the right class's name does not count, unless the class named just
    before it was left out for that reason (LongBench removes from the list that it iterates over).
    """
    named: list[str] = []
    left_out = False
    for name in (name for name in classes if name in answer):
        left_out = not left_out and name in reference and name != reference
        if not left_out:
            named.append(name)
    return 100 / len(named) if reference in named else 0.0


def count(answer: str, reference: str) -> float:
    """The share of the answer's numbers that are the reference, compared digit by digit."""
    numbers = re.findall(r"\d+", answer)
    return 100 * numbers.count(reference) / len(numbers) if numbers else 0.0


def retrieval(answer: str, reference: str, word: str = "Paragraph ") -> float:
    """`count` of the paragraph's number: the reference is `Paragraph 7`, or in Chinese `段落7`."""
    paragraph = re.search(rf"{word}(\d+)", reference)
    return count(answer, paragraph[1] if paragraph else reference)


def code_similarity(answer: str, reference: str) -> float:
    """Similarity of the answer's first line that has no `, # or //, in whole per cent."""
    lines = answer.lstrip("\n").split("\n")
    code = next((line for line in lines if not re.search("[`#]|//", line)), "")
    return float(round(100 * difflib.SequenceMatcher(None, code, reference).ratio()))


SCORES: dict[str, Callable[[str, str], float]] = {  # of every task but classification
    "narrativeqa": f1, "qasper": f1, "multifieldqa_en": f1, "multifieldqa_zh": f1_zh,
    "hotpotqa": f1, "2wikimqa": f1, "musique": f1, "dureader": rouge_zh,
    "gov_report": rouge, "qmsum": rouge, "multi_news": rouge, "vcsum": rouge_zh,
    "triviaqa": f1, "samsum": rouge,
    "passage_count": count, "passage_retrieval_en": retrieval,
    "passage_retrieval_zh": partial(retrieval, word="段落"),
    "lcc": code_similarity, "repobench-p": code_similarity,
}  # fmt: skip
_CLASSIFY = ("trec", "lsht")
_FIRST_LINE = ("trec", "triviaqa", "samsum", "lsht")  # few-shot: models go on with more examples


def has_task(question: Question) -> bool:
    return question.task in SCORES or (question.task in _CLASSIFY and bool(question.classes))


def of_task(answer: str, question: Question) -> float:
    """By the score of the question's task (`has_task`), the best of its references."""
    task = question.task or ""
    if task in _FIRST_LINE:
        answer = answer.lstrip("\n").split("\n")[0]
    by_class = partial(classification, classes=question.classes)
    score = by_class if task in _CLASSIFY else SCORES[task]
    return max(score(answer, reference) for reference in question.references)


def normal_words(text: str) -> list[str]:
    """Lower-case words without ASCII punctuation and articles, as in SQuAD."""
    bare = text.lower().translate(_PUNCTUATION)
    return re.sub(r"\b(?:a|an|the)\b", " ", bare).split()


def token_f1(answer: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of two multisets, 0-100."""
    shared = sum((Counter(answer) & Counter(reference)).values())
    return 100 * 2 * shared / (len(answer) + len(reference)) if shared else 0.0
