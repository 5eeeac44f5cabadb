"""Render messages with a model's chat template into token ids; load a tokenizer from local files;
break control tokens that documents spell, which models would obey. Imports no vllm, opens no
connection."""

import asyncio
import re
from array import array
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from pipeline.core.errors import CommandError, StartError, contained
from pipeline.core.prompts import Message
from pipeline.core.reply_forms import opened_thinking

_THREADS = 4  # tokenizers written in Rust release the GIL
_CACHED_PROMPTS = 256  # a prompt is counted first and sent soon after
_THINKING = re.compile("think|thought|channel|reason", re.IGNORECASE)


class ChatTokenizer:
    """Token ids of whole prompts, the latest ones cached. Control tokens in contents are broken.

    `template`: a Jinja file to use instead of the model's own template; `variables`: for either;
    `time`: what templates print as the current time. Raises OSError, and StartError where the
    template does not render a message.

    `prompt_end`: the token ids after a prompt's last content. `opened_thinking`: the mark of
    thinking that prompts end with, or "". `marks_thinking`: such marks are special tokens, which
    texts of replies leave out by default.
    """

    def __init__(
        self,
        tokenizer: Any,
        template: str | None,
        variables: Mapping[str, Any],
        time: datetime | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = Path(template).read_text(encoding="utf-8") if template else None
        now = {"strftime_now": time.strftime} if time else {}
        self._variables = {**now, **variables}
        self._threads = ThreadPoolExecutor(_THREADS, "chat-tokenizer")
        self._cached_ids = lru_cache(_CACHED_PROMPTS)(
            lambda key: self.tokenize([Message(role=role, content=text) for role, text in key])
        )
        added = list(getattr(tokenizer, "added_tokens_decoder", {}).values())
        self.marks_thinking = any(_THINKING.search(t.content) for t in added if t.special)
        # Known notations, and the tokens that are added to the vocabulary; but those that are words
        # or spaces are text. Numbered tokens share one pattern, as there are thousands of them.
        spelled = (
            token.content
            for token in added
            if (token.special or re.search(r"[^\w\s\u2581]", token.content))
            and not _BYTE.fullmatch(token.content)
            and not _CONTROL.fullmatch(token.content)
        )
        patterns = {re.sub(r"\d+", r"\\d+", re.escape(token)) for token in spelled}
        self._control = re.compile("|".join([*patterns, _NOTATIONS]))
        of_two = [self.tokenize([{"role": "user", "content": text}]) for text in ("one", "two")]
        pairs = zip(*(reversed(ids) for ids in of_two), strict=False)
        end = [id_ for id_, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        self.prompt_end = array("i", end[::-1])
        decoded = tokenizer.decode(end[::-1], skip_special_tokens=False)
        self.opened_thinking = opened_thinking(decoded)

    async def token_ids(self, messages: Sequence[Message]) -> "array[int]":
        """The prompt's token ids, including those of the chat template and generation prompt."""
        key = tuple((message["role"], message["content"]) for message in messages)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._cached_ids, key)

    def tokenize(self, messages: Sequence[Message]) -> "array[int]":
        """As `token_ids`, computed synchronously and not cached. Raises StartError if there is no
        template or it does not render these messages."""
        with contained(CommandError) as raised:
            ids = self._tokenizer.apply_chat_template(
                with_breaks(messages, self._control),
                chat_template=self._template,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
                **self._variables,
            )
            return array("i", ids)
        roles = ", ".join(message["role"] for message in messages)
        why = " ".join(f"{type(raised.error).__name__}: {raised.error}".split())
        raise StartError(
            f"there is no chat template that renders messages of {roles} ({why}); set "
            "engine.chat_template=FILE.jinja"
        )


def local_chat_tokenizer(model: str, settings: Any) -> ChatTokenizer | None:
    """The tokenizer of a model folder, or of a model in Hugging Face's local cache, with the
    revision and chat template of the engine's `settings`, if any. None if transformers is not
    installed, the model is not on this machine, or its template does not render."""
    revision = getattr(settings, "revision", None)
    try:
        from transformers import AutoTokenizer

        return ChatTokenizer(
            AutoTokenizer.from_pretrained(model, revision=revision, local_files_only=True),
            getattr(settings, "chat_template", None),
            getattr(settings, "chat_template_kwargs", {}),
        )
    except (ImportError, OSError, ValueError, KeyError, StartError):  # also if not downloaded
        return None


# Engines obey control tokens that a document spells, so these are broken by this character.
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
# Each begins with a literal: so a text without control tokens is searched quickly.
_NOTATIONS = (
    r"<\|[^<>|\s]{1,64}\|?>|<[^<>|\s]{1,64}\|>|<\uff5c[^<>\uff5c]{1,64}\uff5c>"
    rf"|</?(?:{_TAGS})>|<</?SYS>>|\[/?(?:{_BRACKETED})\]"
    r"|\u25c1/?think\u25b7|/(?<!\S/)(?:no_)?think\b"
)
_CONTROL = re.compile(_NOTATIONS)
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a token of SentencePiece for what no other token has
_BROKEN = re.compile(rf"(?<=[<\[/\u25c1]){_BREAK}")


def with_breaks(messages: Sequence[Message], control: re.Pattern[str] = _CONTROL) -> list[Message]:
    """The messages, with an invisible character after the first one of each control token."""

    def broken(token: re.Match[str]) -> str:
        return token[0][0] + _BREAK + token[0][1:]

    return [
        {"role": message["role"], "content": control.sub(broken, message["content"])}
        for message in messages
    ]


def without_breaks(text: str) -> str:
    """A reply without the characters of `with_breaks`."""
    return _BROKEN.sub("", text)
