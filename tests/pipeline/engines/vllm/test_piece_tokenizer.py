"""Which tokenizers may be given a text in pieces; that the ids are the same is shown by real ones,
in test_real_tokenizers.py."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.engines.vllm.chat_tokenizer import PieceTokenizer, piece_tokenizer
from tests.support.engines.tiny_model import meeting_texts

pytestmark = pytest.mark.vllm

_SPECIAL = ("<|end|>", "<|user|>", "[INST]")
_ODD = (
    "\n", "\n\n", "\r\n", "\t", "  ", " ", " \u00a0", "\u3000", "don't", "we'LL", "1,234.5", "_x_",
    "\u2160", "e\u0301", "\u0301", "\u200d", "\U0001f469\u200d\U0001f680", "日本語", "Война", "a",
    "\u0939\u093f\u0928", "\u0e01\u0e33", "m\u00b2", "<|end|>", "<|user|>", "[INST]", "<0x41>", "I",
    "\u2581", "\u2581of", "\u0120", "\u0120the", "\ufffd", "\x00", "...", "--", "x" * 300, "\ufb01",
)  # fmt: skip


def trained(pre_tokenizer: Any, alphabet: Any = ()) -> Any:
    from tokenizers import Tokenizer, models, trainers

    made = Tokenizer(models.BPE(byte_fallback=not alphabet))
    made.pre_tokenizer = pre_tokenizer
    letters = alphabet or [f"<0x{byte:02X}>" for byte in range(256)]
    marks = list(_SPECIAL) if alphabet else [*_SPECIAL, *letters]
    trainer = trainers.BpeTrainer(
        vocab_size=3000, special_tokens=marks, initial_alphabet=list(alphabet), show_progress=False
    )
    made.train_from_iterator(meeting_texts(), trainer)
    return made


def byte_level(use_regex: bool = True) -> Any:
    from tokenizers import pre_tokenizers

    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    return trained(bytes_, pre_tokenizers.ByteLevel.alphabet())


def gpt_2() -> Any:
    return byte_level()


def gemma() -> Any:
    """Trained word by word, as SentencePiece does; then without splitting into words."""
    from tokenizers import Tokenizer, pre_tokenizers

    state = json.loads(trained(pre_tokenizers.Metaspace(prepend_scheme="never")).to_str())
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    return Tokenizer.from_str(json.dumps(state | {"normalizer": spaces, "pre_tokenizer": None}))


def odd_text(seed: int) -> str:
    """Words of meetings, with odd things among and within them."""
    draw = random.Random(seed)
    words = " ".join(meeting_texts()[:40]).split(" ")
    made = []
    for _ in range(draw.randrange(1, 400)):
        made.append(draw.choice(words) if draw.random() < 0.8 else draw.choice(_ODD))
        made.append(" " if draw.random() < 0.9 else draw.choice(["", "\n", "  ", ". "]))
    return "".join(made)


def test_only_the_end_is_tokenized_for_another_question() -> None:
    """Thirty questions about one text: its tokens are computed once, and 5% more at most."""
    tokenized = 0
    encode = gpt_2().encode

    class Counted:
        def encode(self, text: str, add_special_tokens: bool) -> Any:
            nonlocal tokenized
            ids = encode(text, add_special_tokens=add_special_tokens)
            tokenized += len(ids.ids)
            return ids

    counted = PieceTokenizer(Counted())
    text = "\n".join(meeting_texts())
    shared = len(encode(text, add_special_tokens=False).ids)
    for number in range(30):
        counted.ids(text + f"\n\nWhat was said of the remote control in part {number} of the talk?")
    assert shared < tokenized < 1.05 * shared


def with_entries(made: Any, *entries: str) -> Any:
    """The tokenizer, with entries in its vocabulary that no merges make."""
    from tokenizers import Tokenizer

    state = json.loads(made.to_str())
    for entry in entries:
        state["model"]["vocab"][entry] = len(state["model"]["vocab"])
    return Tokenizer.from_str(json.dumps(state))


def unigram() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(
        meeting_texts(), trainers.UnigramTrainer(vocab_size=500, show_progress=False)
    )
    return tokenizer


def normalizing(tokenizer: Any, kind: str, *arguments: str) -> Any:
    from tokenizers import normalizers

    mine = getattr(normalizers, kind)(*arguments)
    both = [mine, tokenizer.normalizer] if tokenizer.normalizer else [mine]
    tokenizer.normalizer = normalizers.Sequence(both)
    return tokenizer


def with_a_word_that_takes_spaces() -> Any:
    from tokenizers import AddedToken

    tokenizer = gpt_2()
    tokenizer.add_tokens([AddedToken("covid", rstrip=True)])
    return tokenizer


WHOLE: dict[str, Callable[[], Any]] = {
    "a word that takes spaces": with_a_word_that_takes_spaces,
    "a token of two words": lambda: with_entries(gemma(), "of\u2581t"),
    # The second byte of a Cyrillic letter; nothing separates words.
    "half a letter and a space": lambda: with_entries(byte_level(use_regex=False), "\u00b0\u0120"),
    # As Llama 2's.
    "a space before each text": lambda: normalizing(gemma(), "Prepend", "\u2581"),
    "no BPE": unigram,
    # A piece that begins with a space would lose it.
    "stripped": lambda: normalizing(gpt_2(), "Strip"),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_tokenizer_that_may_reach_across_words_is_given_the_whole(kind: str) -> None:
    assert piece_tokenizer(WHOLE[kind]()) is None


def test_marks_that_merges_never_make_may_look_like_words() -> None:
    """As DeepSeek's begin-of-sentence, which has U+2581 between its words."""
    mark = "<begin\u2581of\u2581sentence>"
    tokenizer = with_entries(gemma(), mark)
    assert piece_tokenizer(tokenizer) is None
    tokenizer.add_special_tokens([mark])
    assert piece_tokenizer(tokenizer) is not None
