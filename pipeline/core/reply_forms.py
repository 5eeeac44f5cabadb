"""Read a reply: first the value stated in its family's form, else by the prompt's own parser."""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pipeline.core.prompts import Prompt
from pipeline.core.refusals import Refusals
from pipeline.core.reply_fields import boxes, shown, with_fields_as_lines

T = TypeVar("T")
_DECORATION = str.maketrans("", "", "*_`\"'“”‘’«»「」『』\\#$")
_BRACKETS = str.maketrans("【】〔〕〖〗〈〉⟨⟩《》⟪⟫‹›、", "[][][]<><><><><>,")
_LATEX = re.compile(r"\\[a-zA-Z]{1,20}\s?\{([^{}]*)\}|<\|(?:begin|end)_of_box\|>")
_ROLE = re.compile(
    r"\A\W{0,3}(?:assistant|ai|bot|助手|response|reply|output)\W{0,3}[:：]\s*", re.IGNORECASE
)
# Characters of the longest reply that is parsed: 25,000 tokens of English, more than ten times the
# largest reply budget. Parsers take time by the length, and a longer reply follows no instruction.
MOST_CHARS = 100_000
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
# A form that ends with its value is also how a page is mentioned: "Page 3 says so".
_END_OF_VALUE = r"\s*(?:[.!]?\Z|(?:to|for|as|because|since)\b)"


def plain_text(reply: str) -> str:
    """A reply without bold, quotes and LaTeX, its full-width signs and CJK brackets as ASCII."""
    text = without_latex(unicodedata.normalize("NFKC", html.unescape(reply)))
    return text.translate(_BRACKETS).translate(_DECORATION).strip()


def without_latex(text: str) -> str:
    """The text with LaTeX's commands replaced by their arguments: `\\boxed{\\text{B}}` is B."""
    text = re.sub(r"\\([lr])angle\b", lambda angle: "<" if angle[1] == "l" else ">", text)
    for _ in range(3):  # within one another
        text = _LATEX.sub(lambda command: command[1] or "", text)
    return text


def without_role(reply: str) -> str:
    """The reply without "Assistant:" before it, which may also open the text of a chat."""
    return _ROLE.sub("", reply)


def read_reply(
    prompt: Prompt[T],
    form: str | None,
    reply: str,
    is_cut: bool,
    refusals: Refusals | None = None,
) -> T | None:
    """The value of a reply: the one stated in the family's form, else the one that `prompt.read`
    finds, or `prompt.refusal` where the reply refuses in the family's words.

    A justification may name other values in passing, so a statement takes precedence, as does
    LaTeX's box. None if two differ, unless they are lists that `prompt.read` makes one of, and for
    a reply longer than `MOST_CHARS`.
    """
    if len(reply) > MOST_CHARS:
        return None
    if form is None or prompt.legal(form) is None:  # free text, in which no form means anything
        return prompt.read(reply, is_cut)
    text, fields = with_fields_as_lines(without_role(reply))

    def read(texts: Sequence[str]) -> list[T]:
        values = (_value(prompt, text, is_cut, refusals) for text in texts)
        return list(dict.fromkeys(value for value in values if value is not None))

    statements = list(_statements(plain_text(text), form, prompt.others))
    stated = read(statements)
    # A box in an explanation of what is stated, but cannot be read, is another value.
    boxed = [box for box, is_labelled in boxes(text) if not is_labelled]
    values = read([*statements, *boxed]) if stated or not statements else []
    if len(values) > 1 and all(isinstance(value, tuple) for value in values):
        values = read(["\n".join([*statements, *boxed])])
    elif not values:
        values = read([text]) or read([shown(v) for _, v in fields if not isinstance(v, bool)])
    return values[0] if len(values) == 1 else None


def _value(prompt: Prompt[T], text: str, is_cut: bool, refusals: Refusals | None) -> T | None:
    value = prompt.read(text, is_cut)
    if value is None and refusals is not None and not is_cut:
        return prompt.refusal(plain_text(text), refusals)
    return value


def _statements(text: str, form: str, others: Sequence[str]) -> Iterator[str]:
    """The sentences that begin with the form, from there on, and those that are one of `others`."""
    pattern = _pattern(form)
    for sentence in _SENTENCE.split(text):
        found = pattern.match(sentence) if pattern else None
        if found:
            yield sentence[found.start("statement") :]
        elif any(re.fullmatch(rf"\W*{re.escape(other)}\W*", sentence, re.I) for other in others):
            yield sentence


def _pattern(form: str) -> Any:
    """A regex of a sentence that begins with the form, maybe after "So:"; None for a form without
    words."""
    before, after = (plain_text(part) for part in form.split("{}"))
    if not re.search(r"\w", before):
        return None
    value = rf"[^\n]*?{_spaced(after)}" if after else rf"\s*[\[<(]?\w+[\])>]?{_END_OF_VALUE}"
    return re.compile(rf"\W*(?:\w+\s*[:,]\s*)?(?P<statement>{_spaced(before)}{value})", re.I)


def _spaced(text: str) -> str:
    """A regex of a text that accepts any spacing between its words."""
    return r"\s*".join(re.escape(part) for part in re.findall(r"\w+|[^\w\s]", text))
