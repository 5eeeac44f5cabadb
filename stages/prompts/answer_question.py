"""The prompt for the answer to a question, from the context that the reader is shown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

from pipeline.core.prompts import Constraint, Prompt
from pipeline.core.reply_forms import (
    boxes,
    json_object,
    plain_text,
    shown,
    without_latex,
    without_role,
)
from stages.prompts.passages import DATE, MEMORY, OPTIONS, QUESTION, TEXT, Passage
from stages.prompts.replies import is_hedged, one_of, settled, without_rejected
from stages.text.excerpts import best_sentences, sentences
from stages.text.ranking import relevance, terms
from stages.text.words import num_words, word_spans

# A letter in brackets, or one whose surroundings show that it is no word: "A man" and "U.S." are.
# In angles and braces only a capital counts, as <b> is bold.
_TWO = (  # options are no answer
    r"(?!\s*(?:,|;|/|&|\band\b|\bor\b|\bnor\b)\s*(?:\b(?:maybe|perhaps|possibly|also|even)\s+)?"
    r"[(\[<{]?[A-HJ-Z]\b|[ ]?[(\[][A-Z][)\]]|\s*\?|\s+[B-HJ-Z](?:\s*,|\s+[B-HJ-Z]\b|\s*\Z)"
    r"|\s*,?\s*\b(?:if|unless|no|wait|actually)\b)"
)
_LETTER = (
    r"(?:(?:[(\[]{1,2}\s*(?P<mark>[A-Za-z])|[<{]{1,2}\s*(?P<capital>[A-Z]))\s*(?:[)\]>}]{1,2}|\Z)"
    r"|(?P<bare>[A-Za-z])(?=\s*(?:\Z|[\n:;!)\]}>。]|\s[(\[]|\.(?!\w)|,|\s[-–—]\s)"
    r"|\s+(?:because|since|as|is)\b|(?<![AaIi])\s+[A-Z]|で|だ|입|이|项|項|是?[正对對]|,|因))"
    rf"{_TWO}"
)
_ANSWER = (
    r"(?:\b(?i:answer|ans\b(?=\s?[.:])\.?|antwort|lösung|antwoord|réponse|respuesta|risposta"
    r"|resposta|svar|odpowiedź|cevap|đáp án|ответ|الإجابة|उत्तर)|答案|正解|答え?|정?답)"
)
_OF_OPTION = r"(?i:\s+(?:choice|option|letter|corr[ec]\w+|to\s+th\w+\s+question))?"
_CHOSEN = r"(?i:option|choice|letter|选项|選項)"
_IS = (
    r"\s*(?i:is\b|would be\b|should be\b|must be\b|ist\b|lautet\b|est\b|es\b|è|é"
    rf"|[:=→是为為は은]|->|=>|[-–—](?=\s))[\s:]*(?:(?i:la|le)\s+)?(?:{_CHOSEN}\s+)?"
)
_CHOOSE = (
    r"(?i:\b(?:choos(?:e|ing)|chose|pick(?:ed)?|select(?:ed)?|go(?:ing)?\s+(?:with|for)|opt\s+for"
    r"|settle\s+(?:on|for)|vote\s+for|(?:i|id|i\s+would)\s+(?:say|answer))\s+|(?<![不别別])[选選][择擇项項]?\s?:?\s?)"
)
_SURELY = r"(?:(?:clearly|definitely|therefore|thus|most\s+likely|the|only|one|that\s+is)\s+){0,3}"
_SO = (
    r"(?i:so|thus|therefore|hence|leaves|leaving)[,:]?\s+"
    r"(?i:(?:it|that|this|must|is|be|only)\s+){0,4}"
)
_END = r"(?=\s*(?:\Z|[.,;:!\n]|\b(?:because|since|as)\b))"
# From the strictest to the loosest; each has as many patterns as there are ways to say it.
_OPTIONS = tuple(
    tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns)
    for patterns in (
        (rf"{_ANSWER}{_OF_OPTION}{_IS}{_LETTER}",),
        (
            rf"\b(?i:option|choice|selection|letter|pick){_IS}{_LETTER}",
            rf"(?:\b(?i:(?:correct|right|best|richtig)(?:\s+one)?)|选项|選項){_IS}{_LETTER}",
            rf"{_CHOOSE}(?:(?i:the\s+)?{_CHOSEN}\s*)?{_LETTER}",
            rf"^\W{{0,9}}(?i:(?:final\s+)?answer|choice)\s+{_LETTER}",
            rf"(?:\b{_SO}|[∴⇒→]\s?|~\s+but\s+(?:rather\s+)?){_LETTER}{_END}",
            rf"\b(?i:i\s+(?:think|believe)\s+its?\s+(?:is\s+)?){_LETTER}{_END}",
            r"(?:\((?P<mark>[A-Za-z])\)|\b(?P<bare>[A-Z]))(?:\s+(?:is|seems|looks)|\s?[:–-])\s+"
            rf"{_SURELY}(?:correct|right|best)\b",
        ),
        (
            rf"\A(?!Q:){_LETTER}(?!\s+(?:was|were|says?|mentions?|names?|had|has|might|would|could"
            r"|may)\b|: [A-Z]\s*\Z)",
        ),
        (r"^[ \t]*(?:[-•>]\s|\d[.)]\s)?[(\[]?(?P<mark>[A-Z])[)\].]{0,2}[ \t]*$",),
    )
)
_DENIED = re.compile(r"\b(?i:not|nor|neither)\s+(?i:option\s+)?[(\[]?[A-Z]\b")
_MENTIONED = re.compile(r"\(([A-Z])\)|\b[Oo]ption\s+([A-Z])\b")
_REJECTABLE = r"(?i:(?:option|answer|choice|statement)\s+)?(?:[(\[][A-Za-z][)\]]|[A-HJ-Z]\b)"

# Labels, keys and tags by which a free-form reply marks its answer.
_ANSWER_KEY = re.compile(r"(?:answer|response|result|output)\Z", re.IGNORECASE)
_ANSWER_TAG = re.compile(
    r"^[ \t]*<(?P<tag>(?:final_?)?answer)>(?P<answer>.*?)</(?P=tag)>", re.I | re.M | re.S
)
_WORDS_OF_LABEL = (
    rf"(?i:(?:(?:so|the|my|short|final)\W{{1,3}}){{0,3}}){_ANSWER}[*_ ]{{0,4}}(?i:is\s?)?[:：]"
)
_LABEL = re.compile(
    rf"\A[\s*_#>]{{0,9}}{_WORDS_OF_LABEL}[*_]{{0,3}}"
    r"|^[\s*_#>]{0,9}(?i:final\s+answer)(?:[*_ ]{0,4}[:：][*_]{0,3}|[*_]{0,3}[ \t]{0,9}$)"
    rf"|^(?:#{{1,6}}[ \t]{{1,3}}|[*_]{{1,3}}){_WORDS_OF_LABEL}[*_]{{0,3}}"
    r"|\A[#*_ ]{1,9}(?i:answer)[*_ ]{0,3}\n",
    re.MULTILINE,
)


OUT_OF_RANGE: Literal["out_of_range"] = "out_of_range"
_BRIEF = 40  # words of a brief answer, where the prompt names no number


@dataclass(frozen=True)
class AnswerQuestion(Prompt[int | str]):
    """Answer the question from the passages (none for a closed-book answer).

    The value: of a free-form question the answer's text; of one with options the index of the
    option, or "out_of_range" for a letter of none.
    """

    name: ClassVar[str] = "answer"
    max_reply_tokens: ClassVar[int] = 512
    version: ClassVar[int] = 1
    form: ClassVar[str | None] = "Answer: ({})"  # of a question with options
    is_whole: ClassVar[bool] = True
    assumed: ClassVar[str] = "as many words as are asked for"
    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]
    answer_words: int | None  # about how long a free-form answer should be; null: brief
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> int | str | None:
        if self.options:
            return parse_option(reply, len(self.options), is_cut)
        return free_answer(reply) or None

    def is_legal(self, value: int | str) -> bool:
        return not self.options or value != OUT_OF_RANGE

    def legal(self, form: str) -> Constraint | None:
        return one_of(form, ascii_uppercase[: len(self.options)]) if self.options else None

    def extractive(self) -> str:
        texts = [passage.text for passage in self.passages]
        if self.options:
            return f"Answer: ({ascii_uppercase[self._best_option(texts)]})"
        words = self.answer_words or _BRIEF
        return best_sentences(texts, self.question, words) or _unread(self.question, words)

    def _best_option(self, texts: Sequence[str]) -> int:
        """The option that, with the question, best matches one sentence; else the longest."""
        options = self.options[: len(ascii_uppercase)]
        found = [sentence.text for text in texts for sentence in sentences(text)]
        match = relevance(found, self.question)
        scores = []
        for option in options:
            # Divided by its number of terms, or the longest option would always win.
            own = relevance(found, option) / max(1, len(terms(option)))
            scores.append(float((own + match).max(initial=0.0)) if own.any() else 0.0)
        merit = [(score, len(option)) for score, option in zip(scores, options, strict=True)]
        return merit.index(max(merit))

    def expected(self) -> str:
        return (
            "Answer: (A)" if self.options else " ".join(["answer"] * (self.answer_words or _BRIEF))
        )

    @classmethod
    def samples(cls) -> tuple["AnswerQuestion", ...]:
        return (
            cls(MEMORY, QUESTION, OPTIONS, answer_words=8104),
            cls(MEMORY, QUESTION, (), answer_words=8104),
            cls(TEXT, QUESTION, (), answer_words=8104),
            cls(MEMORY, QUESTION, (), answer_words=None),
            cls(MEMORY, QUESTION, (), answer_words=8104, asked_at=DATE),
            cls((), QUESTION, (), answer_words=8104),
            cls((), QUESTION, OPTIONS, answer_words=8104),
        )

    @classmethod
    def form_values(cls) -> Mapping[str, Any]:
        return {ascii_uppercase[index]: index for index in range(len(OPTIONS))}

    def shown(self) -> Sequence[Any]:
        """All fields except `answer_words`, which does not apply where the answer is a letter."""
        of_length = () if self.options else (self.answer_words,)
        return (self.passages, self.question, self.options, self.asked_at, *of_length)


def _unread(question: str, answer_words: int) -> str:
    """A reply that admits that no text was given; the question in it is cut to fit."""
    lead = "Nothing read says:"
    words = word_spans(question)[: max(1, answer_words - num_words(lead))]
    return f"{lead} {question[: words[-1][1]].strip()}" if words else "Nothing was read."


def free_answer(reply: str) -> str:
    """The answer that a free-form reply states in JSON, tags, a box or after a label; without any
    of them the whole reply, stripped. A label inside a sentence does not count."""
    text = reply.strip()
    answers = [v for k, v in (json_object(text) or {}).items() if _ANSWER_KEY.search(k)]
    if len(answers) == 1:
        text = shown(answers[0])
    if tags := list(_ANSWER_TAG.finditer(text)):
        text = tags[-1]["answer"]
    text = without_role(_LABEL.split(text)[-1]).strip()
    text = text.removesuffix("**").strip() if text.count("**") == 1 else text
    boxed = [box for box, _ in boxes(text)]
    return without_latex(boxed[0]).strip() if len(boxed) == 1 else text


def parse_option(
    reply: str, num_options: int, is_cut: bool = False
) -> int | Literal["out_of_range"] | None:
    """The index, from 0, of the option chosen: `Answer: (C)`, `The answer is C`, `I choose C`, `(C)
    ...`, `C`.

    `Answer:` takes precedence, then a choice in other words, then a letter that opens the reply,
    then one alone on its line, then the only option mentioned, unless the reply was cut. Rejected
    letters ("not (A)") and hedged ones ("one might think the answer is (D)") do not count. None
    where two letters differ; "out_of_range" for a letter of no option.
    """
    letter = _option_letter(plain_text(reply), is_cut)
    if letter is None:
        return None
    index = ord(letter) - ord("A")
    return index if index < num_options else OUT_OF_RANGE


def _option_letter(whole: str, is_cut: bool) -> str | None:
    text = without_rejected(whole, _REJECTABLE)
    found = [[f for one in some for f in one.finditer(text)] for some in _OPTIONS]
    stated = [[_named(f) for f in some if not is_hedged(text, f)] for some in found]
    if any(stated) or is_cut or _DENIED.search(whole):
        return settled(*stated)
    mentioned = [bracketed or bare for bracketed, bare in _MENTIONED.findall(text)]
    return settled([*(_named(f) for some in found for f in some), *mentioned])


def _named(found: re.Match[str]) -> str:
    return next(letter for letter in found.groupdict().values() if letter).upper()
