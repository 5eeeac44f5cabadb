"""engine=openai against a server on loopback: requests, replies, the context, the key; and servers
as they are: how each ends a reply, refuses a long prompt, wraps an error, asks to wait, and what it
does without. Servers that are away: test_outage.py."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import pytest

from pipeline.core.compose import compose
from pipeline.core.engine import Reply, Request
from pipeline.core.errors import StartError, UsageError
from pipeline.core.prompts import Constraint
from pipeline.engines.openai import OpenAIEngine, OpenAISettings
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.reading import request

KEY = "sk-loopback-0123456789abcdef"
NO_PATIENCE = {"retries": 0, "outage_minutes": 0.0}
AWAY = 2.0  # minutes of patience, which no test uses up


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@cache
def composed() -> dict[str, Any]:
    section: dict[str, Any] = compose(["engine=openai", "engine.base_url=x", "engine.model=m"])
    return dict(section["engine"])


def settings(url: str, **changes: Any) -> OpenAISettings:
    return OpenAISettings.model_validate({**composed(), "base_url": url, **NO_PATIENCE, **changes})


def with_engine(engine: OpenAISettings, use: Callable[[OpenAIEngine], Awaitable[Any]]) -> Any:
    async def start_and_use() -> Any:
        return await use(await engine.start())

    return asyncio.run(start_and_use())


def reply(
    server: LoopbackServer, to: Request | None = None, *answers: Answer, **changes: Any
) -> Reply:
    """The reply of an engine on this server, which gives each of `answers` in turn, the last one
    for ever."""
    if answers:
        rest = iter(answers)
        server.answer = lambda body: next(rest, answers[-1])
    engine = settings(server.url, **changes)
    reply: Reply = with_engine(engine, lambda engine: engine.generate(to or request()))
    return reply


def reply_to(answer: Answer, content: str = "one two", **changes: Any) -> Reply:
    """The reply where the server gives this answer."""
    with LoopbackServer() as server:
        return reply(server, request(content), answer, **changes)


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "let me see"}]}
BELL = {"type": "text", "text": "a bell"}


@pytest.mark.parametrize(
    ("message", "text", "thinking"),
    [
        ({}, "a short reply", None),
        ({"reasoning": "let me see"}, "a short reply", "let me see"),
        ({"reasoning_content": "let me see"}, "a short reply", "let me see"),
        ({"content": None, "reasoning": "on and on"}, "", "on and on"),
        ({"content": [BELL, {"type": "text", "text": " rang"}]}, "a bell rang", None),
        ({"content": [THOUGHT, BELL]}, "a bell", "let me see"),
        ({"content": [{"type": "thinking", "thinking": []}, BELL]}, "a bell", None),
    ],
)
def test_every_part_of_a_reply_is_read_and_thinking_is_kept_apart(
    message: dict[str, Any], text: str, thinking: str | None
) -> None:
    said = reply_to(Answer(message=message, finish_reason="length", seconds=0.05))
    assert (said.text, said.thinking, said.finish_reason) == (text, thinking, "length")
    assert (said.prompt_tokens, said.cached_tokens, said.reply_tokens) == (5, 1, 3)
    assert 0.05 <= said.seconds < 5
    assert said.problem is None


@pytest.mark.parametrize("count", ["1e400", "-1", str(2**70), '"many"', "null", "[1]", "1.5"])
def test_a_count_that_is_none_is_zero(count: str) -> None:
    """In JSON that the server does not call JSON."""
    message = '{"content": "bell", "reasoning": 7}'
    usage = f'{{"prompt_tokens": {count}, "completion_tokens": {count}, "total_tokens": 1}}'
    body = f'{{"choices": [{{"finish_reason": ["stop"], "message": {message}}}], "usage": {usage}}}'
    said = reply_to(Answer(body=body, content_type="text/plain"))
    assert (said.text, said.thinking, said.finish_reason) == ("bell", None, "stop")
    assert (said.prompt_tokens, said.reply_tokens) == (0, 0)


@pytest.mark.parametrize(
    ("asking", "changes", "part"),
    [
        ({"seed": 7}, {}, {"max_tokens": 10, "temperature": 0.0}),
        ({}, {"thinking_tokens": 500}, {"max_tokens": 510, "temperature": 0.0}),
        ({}, {"max_tokens_key": "max_completion_tokens"}, {"max_completion_tokens": 10}),
        ({"seed": 7, "temperature": 0.5}, {}, {"seed": 7, "temperature": 0.5}),
        ({"seed": 7, "temperature": None}, {}, {"seed": 7}),  # as reasoning models take it
        ({}, {"args": {"chat_template_kwargs": {"a": 1}}}, {"chat_template_kwargs": {"a": 1}}),
        *(({"constraint": constraint}, {"structured_outputs": "vllm"}, {"structured_outputs": sent})
          for constraint, sent in (
            (Constraint(choices=("a", "b")), {"choice": ["a", "b"]}),
            (Constraint(regex="[ab]{1,2}"), {"regex": "[ab]{1,2}"}))),
    ],
)  # fmt: skip
def test_what_is_sent(
    asking: dict[str, Any], changes: dict[str, Any], part: dict[str, Any]
) -> None:
    with LoopbackServer() as server:
        reply(server, request("one two", **asking), **changes)
    (body,) = (asked.body for asked in server.asked)
    assert (body["model"], body["messages"]) == ("m", [{"role": "user", "content": "one two"}])
    assert {key: body[key] for key in part} == part
    assert ("temperature" in body) == (asking.get("temperature", 0.0) is not None)
    assert {"seed", "structured_outputs", "max_completion_tokens"} & body.keys() <= part.keys()


def test_only_what_changes_replies_is_hashed() -> None:
    same = {"retries": 9, "api_key_env": "NO_SUCH", "sequences": 2,
            "max_tokens_key": "max_completion_tokens"}  # fmt: skip
    plain = settings("http://h/v1")
    assert settings("http://other:1/v1", **same).identity() == plain.identity()
    for change in ({"model": "n"}, {"args": {"top_p": 0.9}}, {"thinking_tokens": 5},
                   {"temperature": None}, {"temperature": 1.0}):  # fmt: skip
        assert settings("http://h/v1", **change).identity() != plain.identity()
    # A server that is left its own temperature samples, so repeats differ.
    unknown = settings("http://h/v1", temperature=None)
    assert unknown.samples and not plain.samples
    assert unknown.identity()["temperature"] is None and "seed" in unknown.identity()


def test_requests_in_flight_are_limited() -> None:
    async def many(engine: OpenAIEngine) -> list[Reply]:
        return await asyncio.gather(*(engine.generate(request(f"number {n}")) for n in range(12)))

    with LoopbackServer(answer=lambda body: Answer(seconds=0.1)) as server:
        replies = with_engine(settings(server.url, sequences=3), many)
    assert len(replies) == len(server.asked) == 12
    assert server.most_at_once == 3


@pytest.mark.parametrize(
    ("counts", "expected", "num_counted"),
    [
        (3, [5, 4, 5], 2),  # each once
        # Estimated where the server has no count or a wrong one: 7 and 6 bytes make 3 and 2 tokens
        # of three bytes; 16 are for the template.
        (None, [19, 18, 19], 0),
        (2, [19, 18, 19], 0),
    ],
)
def test_tokens_are_counted_by_the_server_if_its_count_is_right(
    counts: int | None, expected: list[int], num_counted: int
) -> None:
    async def count(engine: OpenAIEngine) -> list[int]:
        server.num_counted = 0
        contents = ("one two", "ééé", "one two")
        return [await engine.count_tokens(request(content).messages) for content in contents]

    with LoopbackServer(counts=counts) as server:
        assert with_engine(settings(server.url, context_tokens=100), count) == expected
    assert server.num_counted == num_counted


def start_error(engine: OpenAISettings) -> str:
    with pytest.raises(StartError) as caught:
        asyncio.run(engine.start())
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("model", "changes", "says"),
    [
        ({"id": "n"}, {}, "engine.model=m: not served by the server; there are n"),
        ({"id": ["m"]}, {}, "engine.model=m: not served by the server; there is none"),
        ({"id": "m"}, {}, "set engine.context_tokens"),
        ({"id": "m", "max_model_len": "8192"}, {}, "set engine.context_tokens"),
        (None, {"context_tokens": 2001}, "engine.context_tokens=2001: .* a context of 2000; lower"),
        (None, {"thinking_tokens": 2000}, "engine.thinking_tokens=2000: leaves no .* 2000; lower"),
        (None, {"structured_outputs": "vllm"}, "engine.structured_outputs=vllm: .* set it to none"),
    ],
)
def test_a_server_without_what_is_needed(model: Any, changes: dict[str, Any], says: str) -> None:
    listed = model or {"id": "m", "max_model_len": 2000}
    with LoopbackServer(ready=Answer(text="whatever"), model=listed) as server:
        line = start_error(settings(server.url, **changes))
        assert re.search(says, line), line
        url = server.url.removesuffix("/v1")
        assert f"engine.base_url={url}: 404" in start_error(settings(url))
    line = start_error(settings(server.url))
    assert line.startswith(f"engine.base_url={server.url}: no server answers (")
    assert line.endswith("); start it or correct the address")


def test_the_context_is_what_is_listed_or_set_less_the_thinking() -> None:
    async def context(engine: OpenAIEngine) -> int:
        return engine.context_tokens

    with LoopbackServer() as server:
        assert with_engine(settings(server.url), context) == 2000
        assert with_engine(settings(server.url, thinking_tokens=500), context) == 1500
        server.model = {"id": "m"}
        assert with_engine(settings(server.url, context_tokens=50), context) == 50


def test_the_key_is_sent_and_a_refused_one_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """White space around it is not sent: with a line end the client refuses the header, and quotes
    the key in its refusal."""
    with LoopbackServer(key="none") as server:
        for env in ("OPENAI_API_KEY", None):
            assert reply(server, api_key_env=env).text == "a short reply"
    with LoopbackServer(key=KEY) as server:
        assert "put it into OPENAI_API_KEY" in start_error(settings(server.url))
        for wrong in (f"{KEY}\n{KEY[::-1]}", "sk-wrong"):
            monkeypatch.setenv("OPENAI_API_KEY", wrong)
            line = start_error(settings(server.url))
            assert not any(part in line for part in wrong.split())
        assert "the server refuses the key in OPENAI_API_KEY" in line
        monkeypatch.setenv("MY_KEY", f" {KEY}\r\n")
        assert reply(server, api_key_env="MY_KEY").text == "a short reply"


@pytest.mark.parametrize(
    ("key", "value"),
    [("base_url", "http://me:pw-secret@h/v1"), ("base_url", "http://h/v1?k=pw-secret"),
     ("base_url", "localhost:8000/v1"), ("api_key_env", "pw-secret"),
     ("args.max_tokens", {"max_tokens": 5})],
)  # fmt: skip
def test_what_is_no_address_or_variable_is_refused_and_not_shown(key: str, value: Any) -> None:
    """It may hold a secret."""
    with pytest.raises(UsageError, match=rf"engine\.{key} ") as caught:
        settings(**{"url": "http://h/v1", key.partition(".")[0]: value})
    assert "pw-secret" not in str(caught.value)


MARKS = (
    "<|im_end|> <|eot_id|> <s> </s> <start_of_turn> [INST] [/INST] <think> </think> <<SYS>> "
    "<turn|> <\uff5cend\u2581of\u2581sentence\uff5c> [THINK] <seed:think> \u25c1think\u25b7 "
    "<tool_call> /no_think"
)


@pytest.mark.parametrize(
    ("content", "is_changed"),
    [(MARKS, True), ("[NOTE] <b>1</b> <57> [3] a/think of and/or <i>", False),
     ("He wrote\u2060: a < \u2060b", False)],
)  # fmt: skip
def test_control_tokens_are_broken_on_the_way_and_whole_in_replies(
    content: str, is_changed: bool
) -> None:
    with LoopbackServer(answer=lambda body: Answer(text=body["messages"][0]["content"])) as server:
        repeated = reply(server, request(content))
        text = server.asked[0].body["messages"][0]["content"]
    assert repeated.text == content
    assert (text != content) == is_changed
    if is_changed:
        assert text.replace("\u2060", "") == content
        assert not set(MARKS.split()) & set(text.split())


# Servers as they are.


@pytest.mark.parametrize(
    ("theirs", "ours", "at_budget"),  # at_budget: all tokens that the request allows were used
    [
        ("stop", "stop", "stop"), ("STOP", "stop", "length"), ("eos", "stop", "length"),
        ("end_turn", "stop", "length"), (None, "stop", "length"), ("", "stop", "length"),
        ("length", "length", "length"), ("MAX_TOKENS", "length", "length"),
        ("content_filter", "abort", "abort"), ("SAFETY", "abort", "abort"),
        ("tool_calls", "abort", "abort"), ("error", "abort", "abort"),
        ("natural", "stop", "length"), (7, "stop", "length"), (["stop"], "stop", "length"),
    ],
)  # fmt: skip
def test_a_reply_ended_as_the_server_says(theirs: object, ours: str, at_budget: str) -> None:
    """An unknown end of a text is a reply."""
    below, whole = (Answer(finish_reason=theirs, reply_tokens=number) for number in (9, 10))
    assert [reply_to(answer).finish_reason for answer in (below, whole)] == [ours, at_budget]
    assert reply_to(whole, thinking_tokens=5).finish_reason == ours, "15 tokens are allowed"
    if theirs in ("natural", 7, ["stop"]):
        assert reply_to(Answer(text="", finish_reason=theirs)).finish_reason == "abort"


TOO_LONG: list[tuple[int, object]] = [
    (400, {"message": "The input token count (118) exceeds the maximum number of tokens allowed"}),
    (400, {"message": "This model's maximum context length is 512 tokens. However", "code": 400}),
    (400, {"message": "max_tokens=5000 cannot be greater than max_model_len=512.", "code": 400}),
    (400, {"message": "too long", "type": "invalid", "code": "context_length_exceeded"}),
    (400, {"message": "the request exceeds", "type": "exceed_context_size_error", "code": 400}),
    (400, {"message": "The input (9 tokens) is longer than the model's context length (8)."}),
    (400, {"message": "Your input exceeds the context window of this model."}),
    (400, {"message": "prompt is too long: 208310 tokens > 199999 maximum"}),
    (400, {"message": "input length and `max_tokens` exceed context limit: 190 + 21 > 200"}),
    (400, {"message": "This model's maximum prompt length is 131072 but the request contains 537"}),
    (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081"}),
    (400, {"message": "Input is too long for requested model."}),
    (400, {"message": "Range of input length should be [1, 30720]"}),
    (400, {"message": "Your request exceeded model token limit: 8192"}),
    (400, {"message": {"detail": [{"msg": "too large for model with 300 maximum context"}]}}),
    (400, {"message": "Provider returned error", "metadata": {"raw": "prompt is too long: 9 > 3"}}),
    (413, {"message": "Request too large for model `m`: please reduce your message size"}),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"),
    (422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"),
    (429, {"message": "Request too large for gpt-4o on tokens per min: Limit 30, Requested 46"}),
    (500, {"message": "the input length exceeds the context length"}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "error"), TOO_LONG)
def test_a_prompt_that_the_server_finds_too_long_overflows(status: int, error: object) -> None:
    for body in ({"error": error}, [{"error": error}]):
        answer = Answer(status=status, body=json.dumps(body))
        with LoopbackServer() as server:
            said = reply(server, None, answer, retries=3, outage_minutes=AWAY)
        assert (said.finish_reason, said.problem) == ("abort", "context_overflow")
        assert said.text.startswith(f"{status}: ") and len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Unsupported parameter: 'max_tokens' is not supported with this model."),
        (400, "max_tokens is too large: 100000. This model supports at most 16384 completion"),
        (402, "Prompt tokens limit exceeded: 5000 > 3000. Upgrade to a paid account"),
        (404, "The model `m` does not exist"),
        (429, "Rate limit reached on input tokens per minute: Limit 6000, Requested 2000."),
        (500, "context deadline exceeded"),
        (504, "prompt processing exceeded the time limit"),
    ],
)
def test_what_is_refused_for_another_reason_does_not_overflow(status: int, message: str) -> None:
    said = reply_to(Answer(status=status, body=json.dumps({"error": {"message": message}})))
    assert (said.text, said.problem) == (f"{status}: {message}", "refused")


@pytest.mark.parametrize(
    ("body", "says", "problem", "num_sent"),
    [
        ({"error": {"message": "No credits", "code": 402}}, "402: No credits", "refused", 1),
        ({"error": {"message": "No credits", "code": "402"}}, "402: No credits", "refused", 1),
        ({"error": {"message": "Overloaded", "code": 502}}, "502: Overloaded", "refused", 3),
        ({"error": "no such model"}, "no such model", None, 3),
        ({"error": {"message": "prompt is too long"}}, "prompt is too long", "context_overflow", 1),
        ({"object": "error", "message": "Bad", "code": 400}, "400: Bad", "refused", 1),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "error",
                       "error": {"code": 502, "message": "Upstream"}}]},
         "502: Upstream", "refused", 3),
    ],
)  # fmt: skip
def test_an_error_within_a_200_is_that_error(
    body: object, says: str, problem: str | None, num_sent: int
) -> None:
    with LoopbackServer() as server:
        answer = Answer(body=json.dumps(body))
        said = reply(server, None, answer, retries=2, outage_minutes=AWAY)
    assert (said.text, said.problem, said.finish_reason) == (says, problem, "abort")
    assert len(server.asked) == num_sent


LONG = "The baker freed the keeper of the tower. " * 100  # 800 words
CHINESE = "面包师放走了塔里的看守人。" * 100  # 1,300 characters: four a token


@pytest.mark.parametrize(
    ("content", "counted", "is_cut"),
    [
        (LONG, 400, True), (LONG, 1040, False),  # 1.3 tokens a word, as English has
        (LONG, 620, False),  # a tokenizer with tokens of several words
        (LONG, 0, False),  # it does not count
        (CHINESE, 300, False), (CHINESE, 100, True),
        ("रोटीवाले ने मीनार के रखवाले को छोड़ दिया। " * 100, 900, False),
        ("கோபுரத்தின் காவலரை ரொட்டிக்காரர் விடுவித்தார். " * 100, 700, False),  # 400 long words
        ("-" * 4000 + " end", 70, False),  # a rule is a few tokens
        ("one two", 2, False),
    ],
)  # fmt: skip
def test_a_prompt_that_was_cut_in_silence_is_a_problem_and_a_line(
    content: str, counted: int, is_cut: bool
) -> None:
    async def twice(engine: OpenAIEngine) -> tuple[Reply, dict[str, str]]:
        await engine.generate(request(content))
        return await engine.generate(request(content)), engine.findings

    with LoopbackServer(answer=lambda body: Answer(prompt_tokens=counted)) as server:
        said, findings = with_engine(settings(server.url), twice)
    assert (said.finish_reason == "abort") == is_cut == bool(findings)
    assert said.prompt_tokens == counted, "it is what was paid"
    assert (said.text == "a short reply") != is_cut
    assert all(str(counted) in line for line in findings.values())


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_a_list_of_models(status: int) -> None:
    with LoopbackServer(models_status=status) as server:
        assert reply(server, context_tokens=50).text == "a short reply"
        start_error(settings(server.url))
    with LoopbackServer(key="another") as server:
        assert "requires an API key" in start_error(settings(server.url, context_tokens=50))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "least", "most"),
    [
        ("1.2", 1.2, 5.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.2, 2.0), ("-5", 0.2, 2.0),
        ("nan", 0.2, 2.0),
    ],
)  # fmt: skip
def test_a_wait_may_be_a_fraction_of_a_second(after: str, least: float, most: float) -> None:
    busy = Answer(status=429, body="{}", headers={"Retry-After": after})
    with LoopbackServer() as server:
        assert reply(server, None, busy, Answer(), outage_minutes=AWAY).text == "a short reply"
    first, second = (asked.at for asked in server.asked)
    assert least <= second - first <= most
