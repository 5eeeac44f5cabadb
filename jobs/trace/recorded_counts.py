"""Candidates for the way in which a recorded step's engine counted tokens, without starting it."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from pipeline.asking.rerender import Count
from pipeline.engines.openai import estimated_tokens
from pipeline.engines.token_counts import counted_by_rule
from pipeline.engines.vllm.local_tokenizer import local_chat_tokenizer

_SECTIONS = ("engine", "memory_engine", "extractor")
_MODEL_KEYS = ("model", "revision", "chat_template", "chat_template_kwargs")


def possible_counts(
    identity: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[Count | None]:
    """The ways to count that may be the engine's, the likeliest first; None: by estimate, which is
    enough if no decision was close. `config`: the run's, which holds the path of a local model."""
    engine = str(identity.get("engine"))
    if rule := counted_by_rule(engine):
        yield _of_texts(rule)
        return
    yield None
    if engine == "openai":  # for a server without token counts of its own
        yield estimated_tokens
    for section in _sections(identity, config):
        if count := by_tokenizer(json.dumps({key: section.get(key) for key in _MODEL_KEYS})):
            yield count


def _of_texts(rule: Callable[[str], int]) -> Count:
    return lambda messages: sum(rule(message["content"]) for message in messages)


def _sections(identity: Mapping[str, Any], config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The engine sections of the config that may have this identity."""
    raters = config.get("raters")
    sections = [*map(config.get, _SECTIONS), *(raters if isinstance(raters, list) else ())]
    return [
        section
        for section in sections
        if isinstance(section, Mapping)
        and section.get("model")
        and section.get("name") == identity.get("engine")
        and section.get("context_tokens") == identity.get("context_tokens")
    ]


@cache
def by_tokenizer(section: str) -> Count | None:
    """A count by the model's tokenizer and chat template; None if they are not on this machine."""
    settings = {key: value for key, value in json.loads(section).items() if value is not None}
    chat = local_chat_tokenizer(str(settings["model"]), SimpleNamespace(**settings))
    return None if chat is None else lambda messages: len(chat.tokenise(messages))
