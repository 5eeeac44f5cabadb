"""Rendered prompts: templates that look at contents, print the date, open thinking or do not
render; and documents that spell control tokens, for vLLM's own tokenizers."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import StartError
from pipeline.engines.vllm.chat_tokenizer import (
    ChatTokenizer,
    local_chat_tokenizer,
    without_breaks,
)
from tests.support.engines.tiny_model import make_tokenizer
from tests.support.engines.vllm_engines import messages, settings

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make_tokenizer(tmp_path_factory.mktemp("tiny"))


def written(folder: Path, text: str) -> str:
    file = folder / "mine.jinja"
    file.write_text(text, encoding="utf-8")
    return str(file)


LOOKS = (  # as those of Qwen and Nemotron, which look for these words in messages
    "{% for m in messages %}{% if '/no_think' in m.content or '</think>' in m.content %}"
    "{{ raise_exception('seen') }}{% endif %}{{ m.content }}{% endfor %}"
)
NO_THINK = "They said /no_think, then </think>."
DATED = "{{ strftime_now('%d %B %Y') }}: {{ messages[0].content }}"


@pytest.mark.parametrize(
    ("template", "content", "expected"),
    [(LOOKS, NO_THINK, NO_THINK), (DATED, "Hello", "29 February 2024: Hello")],
)
def test_a_template_may_look_at_contents_and_at_the_date_of_the_run(
    tokenizer: Any, tmp_path: Path, template: str, content: str, expected: str
) -> None:
    at = datetime(2024, 2, 29, 23, 59)
    chat = ChatTokenizer(tokenizer, written(tmp_path, template), {}, at)
    assert without_breaks(tokenizer.decode(chat.tokenize(messages(content)))) == expected


@pytest.mark.parametrize(
    ("end", "opened"),
    [
        *((mark, mark) for mark in (
            "<think>\n", "<seed:think>", "[THINK]", "<|START_THINKING|>")),
        ("<think>\n\n</think>\n\n", ""), ("<|assistant|>", ""),
    ],
)  # fmt: skip
def test_the_generation_prompt_tells_whether_thinking_is_open(
    tokenizer: Any, tmp_path: Path, end: str, opened: str
) -> None:
    """And not an earlier turn."""
    text = f"<|user|></think><think>{{{{ messages[0].content }}}}<|end|>{{{{ {end!r} }}}}"
    chat = ChatTokenizer(tokenizer, written(tmp_path, text), {})
    assert chat.opened_thinking == opened
    assert tokenizer.decode(chat.prompt_end) == "<|end|>" + end


@pytest.mark.parametrize(
    "text",
    [
        "{{ raise_exception('only tools') }}",
        "{{ tools | length }}",  # TypeError
        "{{ messages[0].content.no_such() }}",  # UndefinedError
        "{% for m in messages %}",  # a syntax error
    ],
)
def test_a_template_that_does_not_render_is_one_line(
    tokenizer: Any, tmp_path: Path, text: str
) -> None:
    template = written(tmp_path, text)
    with pytest.raises(StartError, match=r"^there is no .*engine\.chat_template") as caught:
        ChatTokenizer(tokenizer, template, {})
    assert "\n" not in str(caught.value)
    make_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with_template = settings("engine.model=org/name", f"engine.chat_template={template}")
    assert local_chat_tokenizer(str(tmp_path), with_template) is None


def vllms_mistral(folder: Path) -> Any:
    from importlib.resources import files

    from vllm.tokenizers.mistral import MistralTokenizer

    of_package = files("mistral_common").joinpath("data/tekken_240911.json")
    (folder / "tekken.json").write_bytes(of_package.read_bytes())
    return MistralTokenizer.from_pretrained(folder)


def vllms_deepseek(folder: Path) -> Any:
    from vllm.tokenizers.deepseek_v32 import get_deepseek_v32_tokenizer

    return get_deepseek_v32_tokenizer(make_tokenizer(folder))


@pytest.mark.parametrize(
    ("make", "marks"),
    [(vllms_mistral, ["<s>", "[INST]", "[/INST]"]), (vllms_deepseek, ["<|end|>", "<think>"])],
)
def test_vllms_own_tokenizers_have_contents_as_text(
    tmp_path: Path, make: Callable[[Path], Any], marks: list[str]
) -> None:
    vllms = make(tmp_path)
    chat, special = ChatTokenizer(vllms, None, {}), vllms.convert_tokens_to_ids(marks)

    def marks_of(content: str) -> list[int]:
        return [n for n in chat.tokenize(messages(content)) if n in special]

    assert marks_of(f"See {' and '.join(marks)}.") == marks_of("See.")
