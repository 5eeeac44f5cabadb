"""Tokenizers of real models, which `make .venv/tokenizers` fetches, and documents that spell
control tokens."""

import random
from pathlib import Path

import pytest

from pipeline.engines.vllm.chat_tokenizer import ChatTokenizer
from tests.support.engines.tiny_model import meeting_texts
from tests.support.engines.vllm_engines import messages

pytestmark = pytest.mark.vllm

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / ".venv" / "tokenizers"
NAMES = (
    "qwen3", "llama2", "llama3", "llama3_1", "gemma3", "deepseek_v3", "gpt4o", "gptoss", "claude",
)  # fmt: skip
TEMPLATE = (  # of those whose package has none
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: "
    "{{ m.content }}{{ eos_token }}\n{% endfor %}"
)
TEXTS = (
    (ROOT / "tests/data/txt/pg151.txt").read_text(encoding="utf-8")[:60_000],
    "\n\n".join(meeting_texts())[:60_000],
    Path(random.__file__).read_text(encoding="utf-8").replace("\n", "\r\n"),  # a program
    "国破山河在，城春草木深。and so on 日本語の文章です。 한국어 문장 입니다 " * 30,
    "Война и мир. \u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a e\u0301tude " * 30,
    "It\u00a0is a\u00a0 b \u3000 c\u200b d  e   f\t g \U0001f469\u200d\U0001f680 h <b>i</b> " * 30,
    "j>> </ k \ufdfa l \u2168 m " * 30,
)  # fmt: skip


class Real:
    """A model's tokenizer, and what is made from it here."""

    def __init__(self, name: str) -> None:
        from transformers import PreTrainedTokenizerFast

        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(FOLDER / name)
        self.tokenizer.chat_template = self.tokenizer.chat_template or TEMPLATE
        self.chat = ChatTokenizer(self.tokenizer, None, {})
        # All tokens that are added to the vocabulary, but runs of white space.
        added = self.tokenizer.backend_tokenizer.get_added_tokens_decoder().items()
        self.control = {of.content: id_ for id_, of in added if of.content.strip(" \n\t\u2581")}


@pytest.fixture(scope="module", params=NAMES)
def real(request: pytest.FixtureRequest) -> Real:
    assert FOLDER.is_dir(), f"{FOLDER} is missing: make .venv/tokenizers"
    return Real(request.param)


def test_a_prompt_has_the_ids_that_transformers_gives(real: Real) -> None:
    for text in TEXTS:
        if not any(token in text for token in real.control):  # Gemma has tokens of HTML
            whole = real.tokenizer.apply_chat_template(
                list(messages(text)), add_generation_prompt=True, return_dict=False
            )
            assert list(real.chat.tokenize(messages(text))) == whole


def test_no_token_that_a_document_spells_is_a_control_token(real: Real) -> None:
    ids_of_control = set(real.control.values())
    assert ids_of_control

    def given(text: str) -> list[int]:
        return [id_ for id_ in real.chat.tokenize(messages(text)) if id_ in ids_of_control]

    expected = given("He wrote and left.")
    draw = random.Random(0)
    for token in real.control:
        other = draw.choice(list(real.control))
        text = f"He wrote {token} and left{token}{other}, {token[:1]}{token}x."
        assert given(text) == expected, token
        decoded = real.tokenizer.decode(real.chat.tokenize(messages(text)))
        assert text in decoded.replace("\u2060", "")
