"""The scripted engine: replies by rule from a YAML file. For tests; knows nothing of reading.

    replies:                      # the first rule that fits a request answers it
      - {prompt: answer, match: "Who wrote", reply: "Answer: (B)"}
      - {prompt: gist, reply: "cut off", finish_reason: length}
      - {match: "chapter 9", hang: true}    # never answers; die: true kills the engine
      - {reply: "anything else"}

`match` is searched in the rendered messages as a regular expression. Tokens are words.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ValidationError, field_validator

from pipeline.engine import Reply, Request
from pipeline.errors import EngineError, UsageError
from pipeline.prompts import Message
from pipeline.settings import Settings


class Rule(Settings):
    """One line of a script."""

    prompt: str | None = None
    match: str = ""
    attempt: int | None = None
    reply: str = ""
    finish_reason: Literal["stop", "length", "abort"] = "stop"
    seconds: float = 0.0
    hang: bool = False
    die: bool = False

    @field_validator("match")
    @classmethod
    def _is_pattern(cls, match: str) -> str:
        try:
            re.compile(match)
        except re.error as error:
            raise ValueError(f"{match!r} is no regular expression ({error})") from None
        return match


class Script(Settings):
    """A script file. Raises UsageError naming file and key where it is none."""

    replies: list[Rule]

    @classmethod
    def read(cls, path: str) -> "Script":
        try:
            return cls.model_validate(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
        except OSError as error:
            mend = "set it, or rater.script, to a YAML file of replies"
            raise UsageError(f"engine.script={path}: {error.strerror}; {mend}") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}: no YAML: {' '.join(str(error).split())}") from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            raise UsageError(f"{path}: {where}: {first['msg']}") from None


def script_sha(path: str) -> str:
    """What names a scripted engine in a step. Raises UsageError where the file is none."""
    Script.read(path)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:8]


class ScriptedEngine:
    """Counts as a model: its verdicts are ratings. Raises EngineError where a rule says `die`."""

    is_model = True

    def __init__(self, script: str, context_tokens: int) -> None:
        self.name = f"scripted:{Path(script).stem}"
        self.context_tokens = context_tokens
        self._rules = Script.read(script).replies

    async def generate(self, request: Request) -> Reply:
        start = time.perf_counter()
        rule = self._rule(request)
        if rule.die:
            raise EngineError(f"{self.name}: the script says die at {request.prompt}")
        await asyncio.sleep(rule.seconds if not rule.hang else 10**9)
        return Reply(
            text=rule.reply,
            finish_reason=rule.finish_reason,
            prompt_tokens=self.count_tokens(request.messages),
            reply_tokens=len(rule.reply.split()),
            seconds=time.perf_counter() - start,
        )

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)

    def _rule(self, request: Request) -> Rule:
        text = "\n".join(message["content"] for message in request.messages)
        for rule in self._rules:
            fits_prompt = rule.prompt in (None, request.prompt)
            fits_attempt = rule.attempt in (None, request.attempt)
            if fits_prompt and fits_attempt and re.search(rule.match, text, re.DOTALL):
                return rule
        return Rule(finish_reason="abort")
