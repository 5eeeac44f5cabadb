"""The answer prompt of all methods but those for chats: the passages of a text that it shows, and
how a letter or a free answer is read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pipeline.core.prompts import Constraint
from pipeline.core.reply_forms import boxes, json_object, plain_text, without_latex, without_role
from pipeline.core.reply_forms import shown as field_text
from stages.prompts.parsing import Filled, Fills, is_hedged, one_of, settled, without_rejected
from stages.text.excerpts import best_sentences, sentences
from stages.text.ranking import relevance, terms
from stages.text.words import num_words, word_spans

T = TypeVar("T")
_BRIEF = 40  # words of a brief answer, where the prompt names no number


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of the reader's context: a page's gist, a raw page, or a run of raw text."""

    kind: Literal["gist", "page", "text"]
    page_number: int | None  # null for text, and where pages are shown without numbers
    text: str


def shown(passages: Sequence[Passage], with_numbers: bool) -> tuple[Passage, ...]:
    return tuple(p if with_numbers else replace(p, page_number=None) for p in passages)


# Sample values that no template contains by chance; some have characters that break templates.
QUESTION = "Who rang the bell at {{ noon }}? <5>"
OPTIONS = ("the sexton & his wife", "nobody {% at all %}", "a 'child'", "Page [3]")
DATE = "2023/05/30 (Tue) 21:48 {{ noon }}"
MEMORY = (
    Passage("gist", 6100, "The village \\n wakes up."),
    Passage("page", 6101, "The bell rings.\n\n<b>Twelve</b> times.\n"),
    Passage("gist", 6102, "Nobody admits {# to #} it."),
)
TEXT_RUNS = (Passage("text", None, "The bell rings."), Passage("text", None, "Nobody admits it."))


@dataclass(frozen=True)
class OfPassages(Filled[T], Generic[T]):
    """Base class of prompts that show passages and the question about them."""

    passages: tuple[Passage, ...]
    question: str
    options: tuple[str, ...]

    def texts(self) -> list[str]:
        return [passage.text for passage in self.passages]

    def query(self) -> str:
        """The question and its options."""
        return "\n".join([self.question, *self.options])


@dataclass(frozen=True)
class AnswerQuestion(OfPassages[int | str]):
    """Answer the question from the passages (none for a closed-book answer). The value: its text;
    with options the index of one, or "out_of_range" for a letter of none. Asked by the stages
    `answer` (except the kinds for chats and those without a call) and, with `answer_each_look_up`,
    `look_up` (kind sequential)."""

    name = "answer"
    max_reply_tokens = 512
    version = 1
    form: ClassVar[str | None] = "Answer: ({})"  # of a question with options
    form_values: ClassVar[Mapping[str, Any]] = {"A": 0, "B": 1, "C": 2, "D": 3}
    is_whole = True
    assumed = "as many words as are asked for"
    fills: ClassVar[Fills] = (
        (MEMORY, QUESTION, OPTIONS, None),
        (MEMORY, QUESTION, (), 8104),
        (TEXT_RUNS, QUESTION, (), 8104),
        (MEMORY, QUESTION, (), None),
        (MEMORY, QUESTION, (), 8104, DATE),
        ((), QUESTION, (), 8104),
        ((), QUESTION, OPTIONS, None),
    )
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
        """With options, the one that together with the question best matches a single sentence;
        the longest if no option matches any. Without options, the sentences that match the question
        best; if there is no sentence, a remark that nothing was read about the question."""
        if self.options:
            said = [sentence.text for text in self.texts() for sentence in sentences(text)]
            match = relevance(said, self.question)
            merit = []
            for option in self.options[: len(ascii_uppercase)]:
                # Divided by its number of terms, or the longest option would always win.
                of_option = relevance(said, option) / max(1, len(terms(option)))
                best = float((of_option + match).max(initial=0.0)) if of_option.any() else 0.0
                merit.append((best, len(option)))
            return f"Answer: ({ascii_uppercase[merit.index(max(merit))]})"
        most = self.answer_words or _BRIEF
        if answer := best_sentences(self.texts(), self.question, most):
            return answer
        lead = "Nothing read says:"
        words = word_spans(self.question)[: max(1, most - num_words(lead))]
        return f"{lead} {self.question[: words[-1][1]].strip()}" if words else "Nothing was read."

    def expected(self) -> str:
        words = self.answer_words or _BRIEF
        return "Answer: (A)" if self.options else " ".join(["answer"] * words)


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
OUT_OF_RANGE: Literal["out_of_range"] = "out_of_range"


def parse_option(
    reply: str, num_options: int, is_cut: bool = False
) -> int | Literal["out_of_range"] | None:
    """The index, from 0, of the option chosen: `Answer: (C)`, `I choose C`, `(C) ...`, `C`.

    `Answer:` takes precedence, then a choice in other words, then a letter that opens the reply,
    then one alone on its line, then the only option mentioned, unless the reply was cut. Rejected
    letters ("not (A)") and hedged ones ("one might think the answer is (D)") do not count. None
    where two letters differ; "out_of_range" for a letter of no option.
    """
    whole = plain_text(reply)
    text = without_rejected(whole, _REJECTABLE)
    matches = [[m for p in patterns for m in p.finditer(text)] for patterns in _OPTIONS]
    stated = [[_letter(m) for m in some if not is_hedged(text, m)] for some in matches]
    if any(stated) or is_cut or _DENIED.search(whole):
        letter = settled(*stated)
    else:
        mentioned = [bracketed or bare for bracketed, bare in _MENTIONED.findall(text)]
        letter = settled([*(_letter(m) for some in matches for m in some), *mentioned])
    if letter is None:
        return None
    index = ascii_uppercase.index(letter)
    return index if index < num_options else OUT_OF_RANGE


def _letter(option: re.Match[str]) -> str:
    return next(letter for letter in option.groupdict().values() if letter).upper()


# Labels, keys and tags by which a free-form reply marks its answer.
_ANSWER_KEY = re.compile(r"(?:answer|response|result|output)\Z", re.IGNORECASE)
_ANSWER_TAG = re.compile(r"(?ims)^[ \t]*<(?P<tag>(?:final_?)?answer)>(?P<answer>.*?)</(?P=tag)>")
_WORDS_OF_LABEL = (
    rf"(?i:(?:(?:so|the|my|short|final)\W{{1,3}}){{0,3}}){_ANSWER}[*_ ]{{0,4}}(?i:is\s?)?[:：]"
)
_ANSWER_LABEL = re.compile(
    rf"(?m)\A[\s*_#>]{{0,9}}{_WORDS_OF_LABEL}[*_]{{0,3}}"
    r"|^[\s*_#>]{0,9}(?i:final\s+answer)(?:[*_ ]{0,4}[:：][*_]{0,3}|[*_]{0,3}[ \t]{0,9}$)"
    rf"|^(?:#{{1,6}}[ \t]{{1,3}}|[*_]{{1,3}}){_WORDS_OF_LABEL}[*_]{{0,3}}"
    r"|\A[#*_ ]{1,9}(?i:answer)[*_ ]{0,3}\n"
)


def free_answer(reply: str) -> str:
    """The answer that a free-form reply states in JSON, tags, a box or after a label; without any
    of them the whole reply, stripped. A label inside a sentence does not count."""
    text = reply.strip()
    answers = [v for k, v in (json_object(text) or {}).items() if _ANSWER_KEY.search(k)]
    if len(answers) == 1:
        text = field_text(answers[0])
    if tags := list(_ANSWER_TAG.finditer(text)):
        text = tags[-1]["answer"]
    text = without_role(_ANSWER_LABEL.split(text)[-1]).strip()
    text = text.removesuffix("**").strip() if text.count("**") == 1 else text
    boxed = [box for box, _ in boxes(text)]
    return without_latex(boxed[0]).strip() if len(boxed) == 1 else text
