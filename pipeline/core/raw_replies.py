"""Split a model's raw reply into what it thought and what it says, without the markup of a chat.

The notations are those of public chat templates, and what is left of them where a server takes
special tokens out. What a document may hold itself (`[3]`, `$5`, tags within a sentence) stays.
"""

import re

# Thinking, wherever its marks stand.
_OPENING = (
    r"(?i:<(?:seed:)?think(?:_\w{1,20})?>)|◁think▷|\[THINK\]|<\|START_THINKING\|>|<\|think\|>"
    r"|<\|begin_of_thought\|>|<\|inner_prefix\|>|<\|channel>thought\b|<unused94>(?:thought\b)?"
    r"|<\|channel\|>(?!final)\w[^<]{0,40}<\|message\|>"
)
_CLOSING = (
    r"(?i:</(?:seed:)?think(?:_\w{1,20})?>)|◁/think▷|\[/THINK\]|<\|END_THINKING\|>|<\|content\|>"
    r"|<\|end_of_thought\|>|<\|inner_suffix\|>|<channel\|>|<unused95>|\[BEGIN FINAL RESPONSE\]"
    r"|<\|channel\|>final[^<]{0,40}(?:<\|constrain\|>\w{0,20})?<\|message\|>|assistantfinal"
)
_MARK, _CLOSES = re.compile(f"{_OPENING}|{_CLOSING}"), re.compile(_CLOSING)
# Thinking only where a reply begins with it, as a document may hold these words; how it ends.
_TAG = r"</(?P<name>thinking|thoughts?|reason|reasoning|reflection|analysis|scratchpad|rationale)>"
_CLOSED_ALONE = re.compile(_TAG, re.IGNORECASE)
_BEGINNINGS = tuple(
    (re.compile(begins), re.compile(ends, re.MULTILINE))
    for begins, ends in (
        (rf"(?i:{_TAG.replace('/', '', 1)})", rf"(?i:{_TAG})"),
        (r"Here(?: is|['’]s) my thought process:", r"Here(?: is|['’]s) my response:"),
        (r"Here are my reasoning steps:", r"\[BEGIN FINAL RESPONSE\]"),
        (r"analysis(?=[A-Z])", r"assistant\s*final"),
        (r"(?ms)analysis\n(?=.*^assistant\s*final$)", r"^assistant\s*final$"),
    )
)
_ANSWER_AT_END = re.compile(r"<answer>(?:(?!</?answer>).)*</answer>\s*\Z", re.I | re.S)
# A model that thinks without a mark speaks of its task in the first person. To want to look up a
# page is no thought, but the reply that a prompt asks for.
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

_TOKEN = (
    r"<[|｜][^<>|｜\n]{1,40}[|｜]?>|<[^<>|｜\s]{1,40}[|｜]>|\[\|[^][|\n]{1,40}\|\]|</?s>|\[/INST\]"
    r"|<(?:bos|(?:seed:)?eos|pad|unk|sop|eop)>|<(?:start|end)_of_(?:turn|utterance|text|role)>"
    r"|<(?:reserved_|unused|extra_id_)\d{1,5}>"
    r"|\[(?:EOS|BOS|gMASK|/?ANSWER|(?:BEGIN|END) FINAL RESPONSE)\]"
)
_ROLE = r"(?:assistant|model)(?=\s*\n|\s*<\|)|#{2,4} ?(?:Response|Assistant|Output):[ \t]*(?=\n)"
_BEFORE = re.compile(rf"\s*(?:{_TOKEN}|{_ROLE}|final(?=[A-Z*(<\[{{]))")
_AFTER = re.compile(rf"(?:(?:{_TOKEN})\s?){{1,50}}\Z")
_AFTER_CHARS = 500  # of the end of a reply
_BETWEEN = re.compile(rf"(?:{_TOKEN})(?:\s*assistant\b)?|\Aanalysis(?=[A-Z])")  # thoughts
_NEXT_TURN = re.compile(  # which some models go on with
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
_ROUNDS = 8  # of marks around one another


def split_reply(text: str, may_think_unmarked: bool = False) -> tuple[str, str]:
    """What a reply thought, without marks, and what it says after that: "" where it ends within its
    thinking. A reply without any marks is returned as it is.

    `may_think_unmarked`: a reply that was cut is thinking, too, where it begins as that does.
    """
    thoughts, said = _split_at_marks(text)
    for _ in range(_ROUNDS):
        before, said = said, _without_markup(said)
        thought, said = _split_at_beginning(said)
        thoughts.append(thought)
        if said == before:
            break
    if may_think_unmarked and not any(thoughts) and _BEGINS_TO_THINK.match(said):
        thoughts, said = [said], ""
    clean = (_BETWEEN.sub("", thought).strip() for thought in thoughts)
    return "\n".join(thought for thought in clean if thought), said


def _split_at_marks(text: str) -> tuple[list[str], str]:
    """What was thought up to the last mark, and the text after it. A mark that opens thinking opens
    all that follows, but for an answer in tags at the end."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return [], text
    end = marks[-1].end()
    if not _CLOSES.fullmatch(marks[-1][0]):
        answer = _ANSWER_AT_END.search(text, end)
        end = answer.start() if answer else len(text)
    return _MARK.split(text[:end]), text[end:].strip()


def _split_at_beginning(text: str) -> tuple[str, str]:
    """The thinking that a text begins with, and the rest; "" and the text without any."""
    for begins, ends in _BEGINNINGS:
        if found := begins.match(text):
            end = ends.search(text, found.end()) or _ANSWER_AT_END.search(text, found.end())
            if end is None:
                return text[found.end() :], ""
            said = text[end.start() if end.re is _ANSWER_AT_END else end.end() :]
            return text[found.end() : end.start()], said.strip()
    closed = _CLOSED_ALONE.search(text)
    if closed and f"<{closed['name'].lower()}>" not in text[: closed.start()].lower():
        return text[: closed.start()], text[closed.end() :].strip()
    return "", text


def _without_markup(text: str) -> str:
    """The text without a layer of special tokens, roles, a fence or tags around the whole of it."""
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
