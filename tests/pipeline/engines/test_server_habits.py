"""Servers as they are: how each ends a reply, refuses a long prompt, wraps an error, asks to wait,
and what it does without."""

import json
import time
from email.utils import formatdate
from typing import Any

import pytest

from pipeline.core.engine import Reply
from pipeline.engines.openai import OpenAIEngine
from tests.pipeline.engines.test_openai_engine import (
    AWAY,
    reply,
    settings,
    start_error,
    with_engine,
)
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.reading import request

LONG = "The baker freed the keeper of the tower. " * 100  # 800 words


def reply_to(answer: Answer, **changes: Any) -> Reply:
    with LoopbackServer() as server:
        return reply(server, request(LONG), answer, **changes)


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
        (
            {"choices": [{"message": {"content": ""}, "finish_reason": "error",
                          "error": {"code": 502, "message": "Upstream"}}]},
            "502: Upstream", "refused", 3,
        ),
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


@pytest.mark.parametrize(
    ("content", "counted", "is_cut"),
    [
        (LONG, 400, True),  # of 800 words
        (LONG, 1040, False),  # 1.3 tokens a word, as English has
        (LONG, 620, False),  # a tokenizer with tokens of several words
        (LONG, 0, False),  # it does not count
        ("面包师放走了塔里的看守人。" * 100, 300, False),  # 1,300 characters: four a token
        ("面包师放走了塔里的看守人。" * 100, 100, True),
        ("रोटीवाले ने मीनार के रखवाले को छोड़ दिया। " * 100, 900, False),
        ("-" * 4000 + " end", 70, False),  # a rule is a few tokens
        ("one two", 2, False),
    ],
)
def test_a_prompt_that_was_cut_in_silence_is_a_problem_and_a_line(
    content: str, counted: int, is_cut: bool
) -> None:
    async def twice(engine: OpenAIEngine) -> tuple[Reply, dict[str, str]]:
        replies = [await engine.generate(request(content)) for _ in range(2)]
        return replies[0], engine.findings

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
        ("1.2", 1.2, 5.0), ("in six seconds", 3.0, 15.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.2, 2.0), ("-5", 0.2, 2.0), ("nan", 0.2, 2.0),
    ],
)  # fmt: skip
def test_a_wait_may_be_a_fraction_or_a_date(after: str, least: float, most: float) -> None:
    after = formatdate(time.time() + 6, usegmt=True) if after == "in six seconds" else after
    busy = Answer(status=429, body="{}", headers={"Retry-After": after})
    with LoopbackServer() as server:
        assert reply(server, None, busy, Answer(), outage_minutes=AWAY).text == "a short reply"
    first, second = (asked.at for asked in server.asked)
    assert least <= second - first <= most
