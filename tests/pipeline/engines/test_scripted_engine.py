"""The scripted engine follows its script, and a wrong script is one clear line."""

import asyncio
from pathlib import Path

import pytest

from pipeline.core.compose import compose
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import EngineError, UsageError
from pipeline.engines.scripted import ScriptedEngine, ScriptedSettings
from tests.support.reading import request, scripted


def settings(script: Path) -> ScriptedSettings:
    composed = compose(["engine=scripted", f"engine.script={script}"])["engine"]
    return ScriptedSettings.model_validate(composed)


def replies(engine: ScriptedEngine, *requests: Request) -> list[Reply]:
    return [asyncio.run(engine.generate(request)) for request in requests]


def test_the_first_rule_that_fits_answers(tmp_path: Path) -> None:
    """A pattern is searched over lines; tokens are words."""
    engine = scripted(
        tmp_path,
        {"prompt": "answer", "match": "Who wrote", "reply": "Answer: (B)"},
        {"prompt": "answer", "reply": "Answer: (A)"},
        {"match": "page \\d+", "reply": "a page of four words", "finish_reason": "length"},
        {"match": "first.*second", "attempt": 2, "reply": "again"},
    )
    lines = ("the first\nline", "the second message")
    two = [{"role": "user", "content": content} for content in lines]
    replied = replies(
        engine, request("Who wrote it?", prompt="answer"), request("Who read it?", prompt="answer"),
        request("Who wrote\npage 12?"), request(messages=two, attempt=2), request(messages=two),
    )  # fmt: skip
    assert [(reply.text, reply.finish_reason) for reply in replied] == [
        ("Answer: (B)", "stop"), ("Answer: (A)", "stop"), ("a page of four words", "length"),
        ("again", "stop"), ("", "abort"),
    ]  # fmt: skip
    third = replied[2]
    assert (third.prompt_tokens, third.reply_tokens, third.cached_tokens) == (4, 5, 0)
    assert asyncio.run(engine.count_tokens([{"role": "user", "content": ""}])) == 0


def test_it_takes_as_long_as_the_rule_says_or_hangs_or_dies(tmp_path: Path) -> None:
    rules = {"match": "bread", "seconds": 0.05}, {"match": "poison", "die": True}, {"hang": True}
    engine = scripted(tmp_path, *rules)
    assert 0.05 <= replies(engine, request("bread"))[0].seconds < 5
    with pytest.raises(EngineError, match="scripted:script"):
        replies(engine, request("poison"))
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(engine.generate(request("x")), 0.05))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("replies: [{reply: x, match: '('}]", r"replies\.0\.match: .*regular expression"),
        ("replies: [{rply: x}]", r"replies\.0\.rply"),
        ("replies: [{reply: x}, {attempt: two}]", r"replies\.1\.attempt"),
        ("replies: [{finish_reason: tired}]", r"replies\.0\.finish_reason"),
        ("reply: x", "replies"), ("just text", "the file"), ("", "the file"),
        ("replies: [", "not YAML"),
    ],
)  # fmt: skip
def test_a_wrong_script_is_a_usage_error_of_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        settings(path).identity()
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
