"""Thinking is taken off every reply in one place, before any prompt reads it, and kept apart."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from pipeline.asking.ask import Ask
from pipeline.asking.replies import Replies
from pipeline.core.calls import Call, Subject
from pipeline.core.engine import FinishReason, Reply, without_thinking
from pipeline.core.prompts import PROMPTS, Asked, Prompt
from tests.support.reading import Listener, reader_of

each_prompt = pytest.mark.parametrize("prompt", [PROMPTS[name] for name in sorted(PROMPTS)])


def ask(
    prompt: Prompt[Any], reply: str, finish_reason: FinishReason = "stop"
) -> tuple[Asked[Any], Call]:
    engine = Listener(lambda _: reply, finish_reason=finish_reason)
    asking = Ask(reader_of(engine), "stage", "d", Replies())
    answer = asyncio.run(asking(prompt, Subject(page_index=0)))
    (call,) = asking.calls()
    return answer, call


@pytest.mark.parametrize(
    ("reply", "text", "thinking"),
    [
        ("<think>A</think>B", "B", "A"),
        ("A</think>B", "B", "A"),  # the chat template opened it
        ("</think>B", "B", None),
        ("<think>\n\n</think>\n\nB", "B", None),
        ("<think>A</think>", "", "A"),
        ("<think>A", "", "A"),
        ("<think>", "", None),
        ("B<think>A", "", "B\nA"),
        ("<think>A</think>B<think>C</think>D", "D", "A\nB\nC"),
        ("<think>A<think>B</think>C</think>D", "D", "A\nB\nC"),
        ("[THINK]A[/THINK]B", "B", "A"),
        ("A[/THINK]B", "B", "A"),
        ("◁think▷A◁/think▷B", "B", "A"),
        ("<reasoning>A</reasoning>B", "B", "A"),
        ("\n\n<thinking>A</thinking>\nB", "B", "A"),
        ("<seed:think>A</seed:think>B", "B", "A"),
        ("<|think|>A<|/think|>B", "B", "A"),
        ("<|channel|>analysis<|message|>A<|end|><|start|>assistant<|message|>B", "B", "A"),
        ("<analysis>A</analysis>\n<answer>B</answer>", "B", "A"),
        ("analysisA.assistantfinalB", "B", "A."),
        ("<|channel|>analysis<|message|>A<|start|>assistant<|channel|>final<|message|>B", "B", "A"),
        ("<|channel|>analysis<|message|>A", "", "A"),
        ("B<|im_end|>\n<|im_start|>user\nC", "B", None),
        ("```json\n[1]\n```", "[1]", None),
        ("Of <reasoning> and </reasoning>.", "Of <reasoning> and </reasoning>.", None),
        (" B \n", " B \n", None),
        ("a < think > b", "a < think > b", None),
    ],
)
def test_what_was_said_and_what_was_thought(reply: str, text: str, thinking: str | None) -> None:
    apart = without_thinking(Reply(text=reply, finish_reason="stop", reply_tokens=7))
    assert apart == Reply(text=text, thinking=thinking, finish_reason="stop", reply_tokens=7)


def test_what_an_engine_took_off_itself_is_kept() -> None:
    apart = Reply(text="B", thinking="T", finish_reason="stop")
    assert without_thinking(apart) == apart
    both = without_thinking(replace(apart, text="<think>A</think>B"))
    assert (both.text, both.thinking) == ("B", "T\nA")


@each_prompt
@pytest.mark.parametrize("form", ["<think>Hm, {}?</think>\n{}", "Hm, {}?\n</think>\n\n{}\n"])
def test_every_prompt_reads_what_follows_the_thinking(prompt: type[Prompt[Any]], form: str) -> None:
    for sample in prompt.samples():
        reply = sample.expected()
        answer, call = ask(sample, form.replace("{}", reply))
        assert answer == ask(sample, reply)[0]
        assert answer.problem is None and answer.value is not None
        assert call.reply == answer.raw == reply
        assert call.thinking == f"Hm, {reply}?"


@each_prompt
@pytest.mark.parametrize(
    ("finish_reason", "problem", "of_call"),
    [("stop", "unparseable", None), ("length", "truncated", "truncated")],
)
def test_thinking_without_an_end_says_nothing(
    prompt: type[Prompt[Any]], finish_reason: FinishReason, problem: Any, of_call: str | None
) -> None:
    reply = "57 Page [3] none STOP Answer: (B) YES"
    for sample in prompt.samples():
        answer, call = ask(sample, f"<think>{reply}", finish_reason)
        assert answer == Asked(None, problem, "")
        assert (call.reply, call.thinking, call.problem) == ("", reply, of_call)
