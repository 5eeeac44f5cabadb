"""Read a reply: remove thinking and chat markup, then find its value by its family's form or the
prompt's own parser. The notations are those of public chat templates, and their remains where a
server strips special tokens."""

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pipeline.core.prompts import Prompt, Refusals

T = TypeVar("T")
_DECORATION = str.maketrans("", "", "*_`\"'“”‘’«»「」『』\\#$")
_BRACKETS = str.maketrans("【】〔〕〖〗〈〉⟨⟩《》⟪⟫‹›、", "[][][]<><><><><>,")
_LATEX = re.compile(r"\\[a-zA-Z]{1,20}\s?\{([^{}]*)\}|<\|(?:begin|end)_of_box\|>")
_ROLE = re.compile(
    r"\A\W{0,3}(?:assistant|ai|bot|助手|response|reply|output)\W{0,3}[:：]\s*", re.IGNORECASE
)
MOST_CHARS = 100_000  # of a reply that is parsed: more than ten times the largest reply budget
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
# A form that ends with its value may also be a mere mention of a page: "Page 3 says so".
_END_OF_VALUE = r"\s*(?:[.!]?\Z|(?:to|for|as|because|since)\b)"


def plain_text(reply: str) -> str:
    """A reply without bold, quotes and LaTeX; full-width signs and CJK brackets become ASCII."""
    text = without_latex(unicodedata.normalize("NFKC", html.unescape(reply)))
    return text.translate(_BRACKETS).translate(_DECORATION).strip()


def without_latex(text: str) -> str:
    """The text with LaTeX's commands replaced by their arguments: `\\boxed{\\text{B}}` is B."""
    text = re.sub(r"\\([lr])angle\b", lambda angle: "<" if angle[1] == "l" else ">", text)
    for _ in range(3):  # within one another
        text = _LATEX.sub(lambda command: command[1] or "", text)
    return text


def without_role(reply: str) -> str:
    """A reply without a leading "Assistant:"."""
    return _ROLE.sub("", reply)


def read_reply(
    prompt: Prompt[T], form: str | None, reply: str, is_cut: bool, refusals: Refusals | None = None
) -> T | None:
    """The value of a reply: as stated in the family's form, or else as found by `prompt.read`, or
    by `prompt.refusal` if the reply refuses in the family's words.

    A statement or a LaTeX box takes precedence, as a justification may mention other values. None
    if two values differ (unless `prompt.read` merges them, as lists), if the reply is longer than
    `MOST_CHARS`, and if a reply that was cut begins like thinking.
    """
    if len(reply) > MOST_CHARS:
        return None
    is_free = form is None or prompt.legal(form) is None
    if is_cut and (_THINKS if is_free else _BEGINS_TO_THINK).match(reply):
        return None
    if form is None or is_free:  # a form has no meaning in free text
        return prompt.read(reply, is_cut)
    text, fields = with_fields_as_lines(without_role(reply))

    def read(texts: Sequence[str]) -> list[T]:
        values: dict[T, None] = {}
        for text in texts:
            value = prompt.read(text, is_cut)
            if value is None and refusals is not None and not is_cut:
                value = prompt.refusal(plain_text(text), refusals)
            if value is not None:
                values[value] = None
        return [*values]

    statements = list(_statements(plain_text(text), form, prompt.others))
    stated = read(statements)
    # A box that differs from a stated but unreadable value makes the reply ambiguous.
    boxed = [box for box, is_labeled in boxes(text) if not is_labeled]
    values = read([*statements, *boxed]) if stated or not statements else []
    if len(values) > 1 and all(isinstance(value, tuple) for value in values):
        values = read(["\n".join([*statements, *boxed])])
    elif not values:
        of_fields = [v for k, v in fields if _OF_VALUE.search(k) and not isinstance(v, bool)]
        values = read([text]) or read([*map(shown, of_fields)])
    return values[0] if len(values) == 1 else None


def _statements(text: str, form: str, others: Sequence[str]) -> Iterator[str]:
    """Sentences that begin with the form, maybe after "So:", and those that are one of `others`."""

    def spaced(part: str) -> str:
        return r"\s*".join(re.escape(word) for word in re.findall(r"\w+|[^\w\s]", part))

    before, after = (plain_text(part) for part in form.split("{}"))
    value = rf"[^\n]*?{spaced(after)}" if after else rf"\s*[\[<(]?\w+[\])>]?{_END_OF_VALUE}"
    pattern = re.compile(rf"\W*(?:\w+\s*[:,]\s*)?(?P<statement>{spaced(before)}{value})", re.I)
    has_words = re.search(r"\w", before)
    for sentence in _SENTENCE.split(text):
        if has_words and (match := pattern.match(sentence)):
            yield sentence[match.start("statement") :]
        elif any(re.fullmatch(rf"\W*{re.escape(other)}\W*", sentence, re.I) for other in others):
            yield sentence


# Values that a reply marks: as JSON, within tags, or in LaTeX's box.
Field = tuple[str, Any]  # a key in words, "next page"; a value of JSON, or the text within a tag
_JSON = re.compile(r"\{\s*\"|\[\s*\{")
_TAGGED = re.compile(r"<(?P<key>[A-Za-z][\w-]{0,30})>(?P<value>.{0,2000}?)</(?P=key)>", re.DOTALL)
_HTML = re.compile(r"(?:b|i|u|p|em|strong|code|pre|span|div|mark|center|li|ul|ol|h\d)\Z", re.I)
_BOX = re.compile(
    r"\\f?box(?:ed)?\s?\{(?P<latex>(?:[^{}]|\{[^{}]*\}){0,2000})\}"
    r"|<\|begin_of_box\|>(?P<token>.{0,2000}?)<\|end_of_box\|>",
    re.DOTALL,
)
_LABELED = re.compile(r"[\w\"”)][\s*_]{0,9}[:=][\s*_$]{0,9}\Z")
_WORDS = re.compile(r"[\s_-]+|(?<=[a-z])(?=[A-Z])")  # separators of a key's words
# Keys of fields that do not hold the value: reasons and confidence, rejected values, questions for
# the contrary, and the answer that a judge compares with.
_ASIDE = re.compile(
    r"\b(?:reason|expla|rational|justif|thought|thinking|analy|evidence|comment|quote|why"
    r"|confidence|certain|scor|probab|same|continu|wrong|incorrect|not(?:es?)?\b"
    r"|reject|exclud|eliminat|discard|missing|reference|gold)",
    re.IGNORECASE,
)
# Keys of fields that hold the value.
_OF_VALUE = re.compile(
    r"\b(?:answer|choice|choose|chosen|option|select\w*|letter|pages?|label|break ?point|action"
    r"|verdict|summary|node)\b"
)
_MOST_FIELDS = 100
_DECODER = json.JSONDecoder(strict=False)  # accepts line breaks within strings
_HALF = re.compile(
    r"\\u(?:d[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2}\\u)d[c-f][0-9a-f]{2})",
    re.IGNORECASE,
)


def with_fields_as_lines(reply: str) -> tuple[str, list[Field]]:
    """The reply with a line `key: value` for each tag and each field of its JSON objects; and these
    fields. Fields with reasons or confidence are left out."""
    fields: list[Field] = []

    def lines(of_value: list[Field]) -> str:
        shown_fields = [(k, v) for k, v in of_value if len(k) > 1 and not _ASIDE.search(k)]
        fields.extend(shown_fields)
        return "".join(f"\n{key}: {shown(value)}\n" for key, value in shown_fields)

    def untagged(tag: re.Match[str]) -> str:
        value = tag["value"].strip()
        return value if _HTML.match(tag["key"]) else lines([(_key(tag["key"]), value)])

    parts, position = [], 0
    for start, end, value in _objects(reply):
        parts += [reply[position:start], lines(_fields(value))]
        position = end
    text = "".join([*parts, reply[position:]])
    return _TAGGED.sub(untagged, text) if "</" in text else text, fields


def boxes(reply: str) -> Iterator[tuple[str, bool]]:
    """Each text in `\\boxed{}`, and True if a label ("Answer: ") precedes it."""
    for box in _BOX.finditer(reply):
        before = reply[max(0, box.start() - 40) : box.start()]
        yield box["latex"] or box["token"] or "", bool(_LABELED.search(before))


def json_object(reply: str) -> dict[str, Any] | None:
    """The JSON object that makes up the whole reply; None if there is none."""
    start, end, value = next(_objects(reply), (0, 0, None))
    is_whole = isinstance(value, dict) and not (reply[:start] + reply[end:]).strip()
    return value if is_whole else None


def shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return f"[{', '.join(map(shown, value))}]" if isinstance(value, list) else str(value)


def without_half_pairs(reply: str) -> str:
    """The reply, of the same length, with U+FFFD for each half surrogate pair that JSON escapes: no
    file can hold one."""
    return _HALF.sub(r"\\ufffd", reply)


def _objects(reply: str) -> Iterator[tuple[int, int, Any]]:
    """Start, end and content of each JSON object, or list of objects, in a reply."""
    position, reply = 0, without_half_pairs(reply)
    for _ in range(_MOST_FIELDS):
        if (start := _JSON.search(reply, position)) is None:
            return
        try:
            value, position = _DECODER.raw_decode(reply, start.start())
        except (ValueError, RecursionError):
            position = start.end()
            continue
        yield start.start(), position, value


def _fields(value: Any) -> list[Field]:
    """The fields of an object and its inner objects; for a list of objects, the values by key."""
    if isinstance(value, dict):
        nested = [field for v in value.values() if isinstance(v, dict) for field in _fields(v)]
        return [(_key(k), v) for k, v in value.items() if not isinstance(v, dict)] + nested
    objects = [item for item in value if isinstance(item, dict)]
    keys = dict.fromkeys(key for item in objects for key in item)
    return [(_key(key), [item[key] for item in objects if key in item]) for key in keys]


def _key(key: str) -> str:
    return " ".join(_WORDS.split(key)).strip().lower().rstrip("0123456789 ")


# Thinking, wherever its marks stand.
_OPENING = (
    r"(?i:<(?:\w{1,16}:)?think(?:_\w{1,20})?>)|◁think▷|\[THINK\]|<\|START_THINKING\|>"
    r"|<\|think(?:ing)?\|>|<\|begin_of_thought\|>|<\|inner_prefix\|>|<\|channel>thought\b|<unused94>(?:thought\b)?"
    r"|<\|channel\|>(?!final)\w[^<]{0,40}<\|message\|>"
)
_CLOSING = (
    r"(?i:</(?:\w{1,16}:)?think(?:_\w{1,20})?>)|◁/think▷|\[/THINK\]|<\|END_THINKING\|>"
    r"|<\|/think(?:ing)?\|>|<\|content\|>|<\|start\|>assistant<\|message\|>"
    r"|<\|end_of_thought\|>|<\|inner_suffix\|>|<channel\|>|<unused95>|\[BEGIN FINAL RESPONSE\]"
    r"|<\|channel\|>final[^<]{0,40}(?:<\|constrain\|>\w{0,20})?<\|message\|>|assistantfinal"
)
_MARK, _CLOSES = re.compile(f"{_OPENING}|{_CLOSING}"), re.compile(_CLOSING)
_OPEN_AT_END = re.compile(
    rf"(?:{_OPENING}|(?i:<(?:thinking|thoughts?|reasoning|reflection|analysis)>))\s*\Z"
)
# Thinking only at the beginning of a reply, as a document may hold these words; and its end.
_TAG = r"</(?P<name>thinking|thoughts?|reason|reasoning|reflection|analysis|scratchpad|rationale)>"
_CLOSED_ALONE = re.compile(_TAG, re.IGNORECASE)
_BEGINNINGS = tuple(
    (re.compile(begins), re.compile(ends, re.MULTILINE))
    for begins, ends in (
        (rf"(?i:{_TAG.replace('/', '', 1)})", rf"(?i:{_TAG})"),
        (r"Here(?: is|['’]s) my thought process:", r"Here(?: is|['’]s) my response:"),
        (r"Here are my reasoning steps:", r"\[BEGIN FINAL RESPONSE\]"),
        (r"analysis(?=[A-Z]|<\|message\|>)", r"assistant\s*final"),
        (r"(?ms)analysis\n(?=.*^assistant\s*final$)", r"^assistant\s*final$"),
    )
)
_ANSWER_AT_END = re.compile(r"<answer>(?:(?!</?answer>).)*</answer>\s*\Z", re.I | re.S)
# A model that thinks without a mark speaks of its task in the first person. "I want to look up
# page 3" is not a thought, but the reply that a prompt asks for.
_TASK = (
    r"(?:answer|decide|choose|pick|determine|find|figure|identify|select|locate|produce|output|see"
    r"|write|respond|provide|compare|check|judge|evaluate|summari[sz]e|shorten|think|consider|parse"
    r"|analy[sz]e|review|scan|examine|recall|work|break|start|go)\b"
)
_BEGINS_TO_THINK = re.compile(
    r"\W{0,9}(?:(?:okay|ok|alright|all right|hm+|wait)\s?[,.!…—-]"
    r"|(?:okay|ok|now|so|first),? (?:let|the user|we need|i need|looking at)\b"
    rf"|let(?:['’]?s| me) (?:{_TASK}|(?:look|read|re-?read)\b(?! up))"
    rf"|(?:we|i) (?:need|have) to {_TASK}"
    r"|(?:we|i)(?: a[rm]e?|['’]re|['’]m) (?:asked|given|told|trying)\b"
    r"|the question asks\b|the (?:user|question|task) (?:\w{1,20} ){1,3}(?:me|us) to\b"
    r"|(?:thinking|thoughts?)(?: process)?\s?[:*])",
    re.IGNORECASE,
)
# As above for free text, which may quote a document: a meeting begins "OK, we need to decide".
_THINKS = re.compile(
    r"\W{0,9}(?:(?:okay|ok|alright|so|now|hm+)\W{1,3})?(?:let me think\b|the question asks\b"
    r"|(?:we|i) need to answer\b|the user (?:asks|asked|is asking|wants (?:me|us)\b))",
    re.IGNORECASE,
)

_TOKEN = (
    r"<[|｜][^<>|｜\n]{1,40}[|｜]?>|<[^<>|｜\s]{1,40}[|｜]>|\[\|[^][|\n]{1,40}\|\]|</?s>|\[/INST\]"
    r"|<(?:bos|(?:seed:)?eos|pad|unk|sop|eop)>|<(?:start|end)_of_(?:turn|utterance|text|role)>"
    r"|<(?:reserved_|unused|extra_id_)\d{1,5}>"
    r"|\[(?:EOS|BOS|gMASK|/?ANSWER|(?:BEGIN|END) FINAL RESPONSE)\]"
)
_TURN = r"(?:assistant|model)(?=\s*\n|\s*<\|)|#{2,4} ?(?:Response|Assistant|Output):[ \t]*(?=\n)"
_BEFORE = re.compile(rf"\s*(?:{_TOKEN}|{_TURN}|final(?=[A-Z*(<\[{{]))")
_AFTER = re.compile(rf"(?:(?:{_TOKEN})\s?){{1,50}}\Z")
_AFTER_CHARS = 500  # of the end of a reply
_BETWEEN = re.compile(rf"(?:{_TOKEN})(?:\s*assistant\b)?|\Aanalysis(?=[A-Z])")  # between thoughts
_NEXT_TURN = re.compile(  # some models continue with it
    r"(?:<\|(?:im_end|end|eot_id|eot|return)\|>|<end_of_turn>|<turn\|>|</s>)\s{0,9}"
    r"(?:<\|(?:im_start|start|start_header_id|header_start|user|system)\|>|<start_of_turn>|<\|turn>"
    r"|\[INST\])"
)
_FENCED = re.compile(r"(?P<mark>`{3,9}|~{3,9})[\w+-]*[ \t]*\n(?P<inner>.*?)\n?(?P=mark)", re.DOTALL)
_WRAP = (
    r"<(?P<tag>answer|final_?answer|final|response|output|result|solution|conclusion|reply"
    r"|assistant)>"
)
_WRAPPED = re.compile(rf"{_WRAP}(?P<inner>.*?)</(?P=tag)>", re.IGNORECASE | re.DOTALL)
_OPENED = re.compile(_WRAP, re.IGNORECASE)
_CLOSED = re.compile(_WRAP.replace("<", "</", 1) + r"\s*\Z", re.IGNORECASE)
_ROUNDS = 8  # the most nested marks


def opened_thinking(prompt: str) -> str:
    """The mark that opens thinking at the end of a prompt; "" if there is none."""
    opened = _OPEN_AT_END.search(prompt)
    return opened[0] if opened else ""


def split_reply(text: str) -> tuple[str, str]:
    """The thinking of a reply, without marks, and the text after it: "" if the reply ends while
    thinking."""
    thoughts, said, marks = list[str](), text, list(_MARK.finditer(text))
    if marks:
        end = marks[-1].end()
        if not _CLOSES.fullmatch(marks[-1][0]):  # then all that follows is thinking, but an answer
            answer = _ANSWER_AT_END.search(text, end)
            end = answer.start() if answer else len(text)
        thoughts, said = _MARK.split(text[:end]), text[end:].strip()
    for _ in range(_ROUNDS):
        before = said
        thought, said = _split_at_beginning(_without_markup(said))
        thoughts.append(thought)
        if said == before:
            break
    clean = (_BETWEEN.sub("", thought).strip() for thought in thoughts)
    return "\n".join(thought for thought in clean if thought), said


def _split_at_beginning(text: str) -> tuple[str, str]:
    """The thinking at the beginning of a text, and the rest; without thinking, "" and the text."""
    start = len(text) - len(text.lstrip())
    for begins, ends in _BEGINNINGS:
        if begin := begins.match(text, start):
            end = ends.search(text, begin.end()) or _ANSWER_AT_END.search(text, begin.end())
            if end is None:
                return text[begin.end() :], ""
            said = text[end.start() if end.re is _ANSWER_AT_END else end.end() :]
            return text[begin.end() : end.start()], said.strip()
    closed = _CLOSED_ALONE.search(text)
    if closed and f"<{closed['name'].lower()}>" not in text[: closed.start()].lower():
        return text[: closed.start()], text[closed.end() :].strip()
    return "", text


def _without_markup(text: str) -> str:
    """The text without one layer of special tokens, roles, a fence or tags around it."""
    if (turn := _NEXT_TURN.search(text)) and text[: turn.start()].strip():
        text = text[: turn.start()].strip()
    if before := _BEFORE.match(text):
        text = text[before.end() :].strip()
    if after := _AFTER.search(text.rstrip(), max(0, len(text.rstrip()) - _AFTER_CHARS)):
        text = text[: after.start()].strip()
    for around, other in ((_FENCED, _FENCED), (_WRAPPED, _OPENED)):
        whole = around.fullmatch(text.strip())
        if whole and not other.search(whole["inner"]):
            return whole["inner"].strip().lstrip(": ")
    if (opened := _OPENED.match(text)) and f"</{opened['tag']}>" not in text:
        text = text[opened.end() :].strip()  # its end is a stop string, or was cut off
    closed = _CLOSED.search(text, max(0, len(text) - _AFTER_CHARS))
    if closed and f"<{closed['tag']}>" not in text:
        text = text[: closed.start()].strip()  # its beginning is in the prompt
    return text
