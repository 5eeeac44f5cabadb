"""Render messages with a model's chat template into token ids; load a tokenizer from files on this
machine. Imports no vllm, opens no connection.

Contents are tokenised as text: a document that spells a control token of its reader is given none,
and a template sees of a content only whether there is one.
"""

import asyncio
import json
import re
import secrets
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline.core.errors import CommandError, StartError, contained
from pipeline.core.prompts import Message
from pipeline.core.reply_forms import opened_thinking

_THREADS = 4  # tokenizers written in Rust release the GIL
_CACHED_TOKENS = 10_000_000  # 40 MB; cached, as a prompt is counted first and sent later
# Private-use characters that no document can hold, as they are drawn anew in every process.
_SEAL = "".join(chr(0xF0000 + secrets.randbelow(0xFFFD)) for _ in range(8))
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a token of SentencePiece for what no other token has
_THINKING = re.compile("think|thought|channel|reason", re.IGNORECASE)
_TRIED: tuple[Message, ...] = ({"role": "user", "content": 'A "line"\n\n& another, na\u00efve.'},)

_Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja file to use instead of the model's own template, variables for either, and the time
    that templates print; None: now."""

    file: str | None
    variables: Mapping[str, Any]
    time: datetime | None = None

    def text(self) -> str | None:
        """The file's content; None for the model's own template. Raises OSError."""
        return Path(self.file).read_text(encoding="utf-8") if self.file else None


class SealedTokenizer:
    """A copy of a `tokenizers.Tokenizer` in which every control token is spelled with a seal before
    it, so that the model's own spelling is text. Ids are the same."""

    def __init__(self, tokenizer: Any) -> None:
        state = json.loads(tokenizer.to_str())
        tokens = state["added_tokens"]
        control = {token["content"] for token in tokens if _is_control(token)}
        for token in tokens:
            token["content"] = _sealed(token["content"], control)
        _seal_vocabulary(state["model"], control)
        unused = {"truncation": None, "padding": None, "post_processor": None}
        self._tokenizer = type(tokenizer).from_str(json.dumps(state | unused))
        self._by_pieces = piece_tokenizer(self._tokenizer)
        longest_first = sorted(control, key=len, reverse=True)
        self._marks = re.compile(
            "|".join([rf"{_SEAL}(\d+){_SEAL}", *map(re.escape, longest_first)])
        )

    def ids(self, rendered: str, contents: Sequence[str]) -> "array[int]":
        """The token ids of a rendered prompt that has a placeholder for each of the contents."""
        text = self._marks.sub(
            lambda found: contents[int(found[1])] if found[1] else _SEAL + found[0], rendered
        )
        if self._by_pieces:
            return self._by_pieces.ids(text)
        return array("i", self._tokenizer.encode(text, add_special_tokens=False).ids)


def _is_control(token: Mapping[str, Any]) -> bool:
    """False for the words and spaces that are added to some vocabularies: they are text."""
    spelled = token["content"]
    is_marked = token["special"] or re.search(r"[^\w\s\u2581]", spelled)
    return bool(is_marked) and not _BYTE.fullmatch(spelled)


def _sealed(token: str, control: set[str]) -> str:
    return _SEAL + token if token in control else token


def _seal_vocabulary(model: dict[str, Any], control: set[str]) -> None:
    """Rename control tokens that are in the model's own vocabulary, too, and drop the merges by
    which text would become one."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {_sealed(token, control): id_ for token, id_ in vocabulary.items()}
    else:  # of a Unigram model
        model["vocab"] = [[_sealed(token, control), score] for token, score in vocabulary]
    if model.get("unk_token"):
        model["unk_token"] = _sealed(model["unk_token"], control)
    if "merges" in model:
        model["merges"] = [
            (left, right)
            for left, right in model["merges"]
            if control.isdisjoint((left, right, left + right))
        ]


class ChatTokenizer:
    """Token ids of whole prompts, with an LRU cache.

    A tokenizer that is not of the library `tokenizers`, and takes contents for more than text, is
    given some in which control tokens of known notations are broken by an invisible character
    (`is_breaking`). Raises StartError where the template does not render a message.

    `opened_thinking`: the mark of thinking that prompts end with, "" if they end with none.
    `marks_thinking`: such marks are special tokens, which texts of replies leave out by default.
    """

    def __init__(self, tokenizer: Any, template: ChatTemplate) -> None:
        self._tokenizer = tokenizer
        self._template_text = template.text()
        now = {"strftime_now": template.time.strftime} if template.time else {}
        self._variables = {**now, **template.variables}
        self._threads = ThreadPoolExecutor(_THREADS, "chat-tokenizer")
        self._cache: OrderedDict[_Key, array[int]] = OrderedDict()  # least recently used first
        self._num_cached_tokens = 0
        added = getattr(tokenizer, "added_tokens_decoder", {}).values()
        special = (token.content for token in added if token.special)
        self.marks_thinking = any(map(_THINKING.search, special))
        self._sealed: SealedTokenizer | None = None
        self.is_breaking = False
        self._sealed = self._sealed_copy(self.tokenise(_TRIED))
        # The token ids after a prompt's last content: end of its turn, and generation prompt.
        self.prompt_end = self._prompt_end()
        end = tokenizer.decode(list(self.prompt_end), skip_special_tokens=False)
        self.opened_thinking = opened_thinking(end)
        # Mistral's own encode contents as text; to version 1, [INST] is text in templates, too.
        self.is_breaking = self._sealed is None and getattr(tokenizer, "version", 1) < 2

    async def token_ids(self, messages: Sequence[Message]) -> "array[int]":
        """The prompt's token ids, including those of the chat template and generation prompt."""
        key = tuple((message["role"], message["content"]) for message in messages)
        if key not in self._cache:
            loop = asyncio.get_running_loop()
            ids = await loop.run_in_executor(self._threads, self.tokenise, messages)
            self._add_to_cache(key, ids)
        self._cache.move_to_end(key)
        return self._cache[key]

    def tokenise(self, messages: Sequence[Message]) -> "array[int]":
        """The prompt's token ids as in `token_ids`, computed synchronously and not cached.

        Raises StartError if there is no template or it does not render these messages.
        """
        with contained(CommandError) as raised:
            if self._sealed is None:
                shown = with_breaks(messages) if self.is_breaking else messages
                return array("i", self._rendered(shown, tokenize=True, return_dict=False))
            hidden, contents = _hidden(messages)
            return self._sealed.ids(self._rendered(hidden, tokenize=False), contents)
        roles = ", ".join(message["role"] for message in messages)
        why = " ".join(f"{type(raised.error).__name__}: {raised.error}".split())
        raise StartError(
            f"there is no chat template that renders messages of {roles} ({why}); set "
            "engine.chat_template=FILE.jinja"
        )

    def _sealed_copy(self, whole: "array[int]") -> SealedTokenizer | None:
        """The sealed copy; None if the tokenizer cannot be copied, or its template does more with a
        content than to place it, so that the ids of `_TRIED` are not `whole`."""
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        with contained():
            copy = SealedTokenizer(backend) if backend is not None else None
            hidden, contents = _hidden(_TRIED)
            if copy and copy.ids(self._rendered(hidden, tokenize=False), contents) == whole:
                return copy
        return None

    def _prompt_end(self) -> "array[int]":
        first, second = (
            self.tokenise([{"role": "user", "content": text}])[::-1] for text in ("one", "two")
        )
        pairs = enumerate(zip(first, second, strict=False))
        length = next((n for n, (one, other) in pairs if one != other), 0)
        return first[:length][::-1]

    def _rendered(self, messages: Sequence[Message], **how: bool) -> Any:
        return self._tokenizer.apply_chat_template(
            list(messages),
            chat_template=self._template_text,
            add_generation_prompt=True,
            **how,
            **self._variables,
        )

    def _add_to_cache(self, key: _Key, ids: "array[int]") -> None:
        self._num_cached_tokens += len(ids) - len(self._cache.get(key, ()))
        self._cache[key] = ids
        while self._num_cached_tokens > _CACHED_TOKENS and len(self._cache) > 1:
            self._num_cached_tokens -= len(self._cache.popitem(last=False)[1])


def _hidden(messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """The messages with a placeholder for each content, and the contents without the white space
    around them, which stays, as templates may strip it."""
    contents = [message["content"].strip() for message in messages]
    hidden: list[Message] = []
    for index, (message, content) in enumerate(zip(messages, contents, strict=True)):
        shown = message["content"].partition(content) if content else (message["content"], "", "")
        placeholder = f"{_SEAL}{index}{_SEAL}" if content else ""
        hidden.append({"role": message["role"], "content": shown[0] + placeholder + shown[2]})
    return hidden, contents


def local_chat_tokenizer(model: str, settings: Any) -> ChatTokenizer | None:
    """The tokenizer of a model folder, or of a model in Hugging Face's local cache.

    `settings`: of any engine; its revision and chat template are used if it has them. None if
    transformers is not installed, the model is not on this machine, or its template does not
    render.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None
    revision = getattr(settings, "revision", None)
    template = ChatTemplate(
        getattr(settings, "chat_template", None), getattr(settings, "chat_template_kwargs", {})
    )
    try:
        loaded = AutoTokenizer.from_pretrained(model, revision=revision, local_files_only=True)
        return ChatTokenizer(loaded, template)
    except (OSError, ValueError, KeyError, StartError):  # also if the model is not downloaded
        return None


# Control tokens that a text spells, for engines that cannot have contents tokenised as text.
_BREAK = "\u2060"  # word joiner: has no width, is no white space and is part of no control token
_TAGS = (
    r"s|unk|pad|bos|eos|mask|eot|sop|eop|endoftext|(?:start|end)_of_\w{1,24}|fim_\w{1,8}|file_sep"
    r"|tool_calls?|tool_response|(?:\w{1,16}:)?think|thinking|thought"
)
_BRACKETED = (
    "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|THINK"
    "|MODEL_SETTINGS|IMG|IMG_BREAK|IMG_END|PREFIX|MIDDLE|SUFFIX|AUDIO|BEGIN_AUDIO|gMASK"
)
# <|im_end|> and the like, and Gemma 4's <|turn> and <turn|>; DeepSeek's full-width bars; <s> and
# <think>; Llama 2's and Mistral's; Kimi's; Qwen's and Nemotron's switches of thinking.
_CONTROL = re.compile(
    r"<\|[^<>|\s]{1,64}\|?>|<[^<>|\s]{1,64}\|>|<\uff5c[^<>\uff5c]{1,64}\uff5c>"
    rf"|</?(?:{_TAGS})>|<</?SYS>>|\[/?(?:{_BRACKETED})\]"
    r"|\u25c1/?think\u25b7|(?<!\S)/(?:no_)?think\b"
)
_BROKEN = re.compile(rf"(?<=[<\[/\u25c1]){_BREAK}")


def with_breaks(messages: Sequence[Message]) -> list[Message]:
    """The messages, with an invisible character after the first one of each control token."""
    return [
        {
            "role": message["role"],
            "content": _CONTROL.sub(lambda m: m[0][0] + _BREAK + m[0][1:], message["content"]),
        }
        for message in messages
    ]


def without_breaks(text: str) -> str:
    """A reply without the characters of `with_breaks`."""
    return _BROKEN.sub("", text)


_LETTER = r"[^\W\d_]"
# A word's last letter, before one space and another word.
_CUT = re.compile(rf"{_LETTER}(?= {_LETTER})")
# A letter, or a character cut in its bytes, before a space: U+2581 is SentencePiece's.
_REACHES_ACROSS = re.compile(rf"(?:{_LETTER}|\ufffd)[ \u2581]")
_NEW_LINE = "\u010a"  # as byte-level BPE spells it
_PIECE_CHARS = 400  # at least; more up to a line's end, so that texts that begin elsewhere agree
_CACHED_PIECES = 50_000  # of English some 6 million tokens and 70 MB
_LONGEST_CACHED = 4 * _PIECE_CHARS  # a longer piece is of a text with hardly a place to cut it

_PROBE = """Mr. and Mrs. Hale's 2nd letter of 1854 says: don't go  home\talone (or with them),
we're naïve  and the Straße is long.\n\n\n  Война и мир, e\u0301tude of a cafe\u0301 in Oslo and
<b>bold</b> text def f(x): return x if y else z\r\n日本語 and 中文 go on: m\u00b2 of \u00b2 x, Ⅷ and
½ cups of "tea" <|im_end|> so it ends \U0001f600 or [INST] say so [/INST] and we go on as of now """


class PieceTokenizer:
    """The token ids of whole texts, as `tokenizer.encode(text, add_special_tokens=False)` gives
    them; those of pieces are kept in an LRU cache, as many prompts share a document's text."""

    def __init__(self, tokenizer: Any, piece_chars: int = _PIECE_CHARS) -> None:
        self._tokenizer = tokenizer
        self._piece_chars = piece_chars
        self._cached_ids = lru_cache(_CACHED_PIECES)(self._encode)

    def ids(self, text: str) -> "array[int]":
        """The text's token ids."""
        joined = array("i")
        for piece in self._pieces(text):
            ids_of = self._encode if len(piece) > _LONGEST_CACHED else self._cached_ids
            joined.extend(ids_of(piece))
        return joined

    def _encode(self, piece: str) -> "array[int]":
        return array("i", self._tokenizer.encode(piece, add_special_tokens=False).ids)

    def _pieces(self, text: str) -> Iterator[str]:
        start, size = 0, self._piece_chars
        while True:
            line_end = text.find("\n", start + size, start + 2 * size)
            cut = _CUT.search(text, line_end if line_end >= 0 else start + size)
            if cut is None:
                break
            yield text[start : cut.end()]
            start = cut.end()
        yield text[start:]


def piece_tokenizer(tokenizer: Any) -> PieceTokenizer | None:
    """A tokenizer by pieces that equals this `tokenizers.Tokenizer`; None if there is none, as this
    is no BPE, has tokens across words, or begins each text in a way of its own.

    BPE makes a token of two neighbours only if the whole is in the vocabulary: where no token can
    reach across a place, what is before it and what is after it are tokenised alike apart.
    """
    if type(tokenizer.model).__name__ != "BPE" or _reaches_across(tokenizer):
        return None
    whole = tokenizer.encode(_PROBE, add_special_tokens=False).ids
    by_pieces = list(PieceTokenizer(tokenizer, piece_chars=0).ids(_PROBE))
    return PieceTokenizer(tokenizer) if by_pieces == whole else None


def _reaches_across(tokenizer: Any) -> bool:
    """True if a token may hold the end of a word and a space after it."""
    from tokenizers.decoders import ByteLevel

    added = tokenizer.get_added_tokens_decoder().values()
    normalizer = tokenizer.normalizer
    space = normalizer.normalize_str("a b")[-2] if normalizer else " "
    for token in added:
        spaces = f"[ {space}]" if token.normalized else " "
        end = r"|\Z" if token.rstrip else ""
        if re.search(f"{_LETTER}(?:{spaces}{end})", token.content):
            return True
    merged = tokenizer.get_vocab(with_added_tokens=False).keys() - {
        token.content for token in added
    }
    # As text, a line each; a character of which a token has a part is U+FFFD. Tokens that are not
    # byte-level stay as they are.
    lines = [part for token in merged for part in (token, _NEW_LINE)]
    return bool(_REACHES_ACROSS.search(ByteLevel().decode(lines)))
