"""Token ids of long texts, joined from those of their pieces.

Prompts share most of their text: thirty questions about a book of 100,000 tokens differ in the last
hundred. A text is cut where no token can reach across, so that the joined ids of its pieces are
those of the whole; and a piece that many prompts have is tokenised once.
"""

import re
import sys
import threading
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

_LETTER = r"[^\W\d_]"
# A word's last letter, before one space and another word.
_CUT = re.compile(rf"{_LETTER}(?= {_LETTER})")
# A letter, or a character cut in its bytes, before a space: U+2581 is SentencePiece's.
_REACHES_ACROSS = re.compile(rf"(?:{_LETTER}|\ufffd)[ \u2581]")
_NEW_LINE = "\u010a"  # as byte-level BPE spells it
_PIECE_CHARS = 400  # at least; more up to a line's end, so that texts that begin elsewhere agree
_CACHED_PIECES = 50_000  # of English some 6 million tokens and 70 MB
_LONGEST_CACHED = 4 * _PIECE_CHARS  # a longer piece is of a text with hardly a place to cut it

_PROBE = """Mr. and Mrs. Hale's 2nd letter of 1854 says: don't go  home\talone (or with them),
we're naïve  and the Straße is long.\n\n\n  Война и мир, e\u0301tude of a cafe\u0301 in Oslo and
<b>bold</b> text def f(x): return x if y else z\r\n日本語 and 中文 go on: m\u00b2 of \u00b2 x, Ⅷ and
½ cups of "tea" <|im_end|> so it ends \U0001f600 or [INST] say so [/INST] and we go on as of now """


class PieceTokenizer:
    """The token ids of whole texts, as `tokenizer.encode(text, add_special_tokens=False)` gives
    them; those of pieces are kept in an LRU cache. Threads may share it: a piece is tokenised once.

    `tokenizer`: a `tokenizers.Tokenizer`. `drops_space`: a piece is tokenised without the space
    that it begins with, as the tokenizer puts one before each text.
    """

    def __init__(
        self, tokenizer: Any, drops_space: bool = False, piece_chars: int = _PIECE_CHARS
    ) -> None:
        self._tokenizer = tokenizer
        self.drops_space = drops_space
        self._piece_chars = piece_chars
        self._cached_ids = lru_cache(_CACHED_PIECES)(self._encode)
        self._lock = threading.Lock()

    @property
    def num_cached(self) -> int:
        """The pieces whose ids are kept."""
        return self._cached_ids.cache_info().currsize

    def ids(self, text: str) -> "array[int]":
        """The text's token ids."""
        joined = array("i")
        for piece in self._pieces(text):
            joined.extend(self._ids_of(piece))
        return joined

    def _ids_of(self, piece: str) -> "array[int]":
        if len(piece) > _LONGEST_CACHED:
            return self._encode(piece)
        with self._lock:
            return self._cached_ids(piece)

    def _encode(self, piece: str) -> "array[int]":
        return array("i", self._tokenizer.encode(piece, add_special_tokens=False).ids)

    def _pieces(self, text: str) -> Iterator[str]:
        start, size = 0, self._piece_chars
        while cut := _CUT.search(text, self._line_end(text, start + size)):
            yield text[start : cut.end()]
            start = cut.end() + self.drops_space
        yield text[start:]

    def _line_end(self, text: str, at: int) -> int:
        """The end of the line at `at`, or `at` itself if that is a piece away."""
        end = text.find("\n", at, at + self._piece_chars)
        return at if end < 0 else end


def piece_tokenizer(tokenizer: Any) -> PieceTokenizer | None:
    """A tokenizer by pieces that equals this `tokenizers.Tokenizer`; None if there is none, as this
    is no BPE or has tokens across words.

    BPE makes a token of two neighbours only if the whole is in the vocabulary, and of two pieces of
    the pre-tokenizer none: where no token can reach across a place, what is before it and what is
    after it are tokenised alike apart.
    """
    if type(tokenizer.model).__name__ != "BPE" or _reaches_across(tokenizer):
        return None
    whole = tokenizer.encode(_PROBE, add_special_tokens=False).ids
    for drops_space in (False, True):
        if list(PieceTokenizer(tokenizer, drops_space, piece_chars=0).ids(_PROBE)) == whole:
            return PieceTokenizer(tokenizer, drops_space)
    return None


def _reaches_across(tokenizer: Any) -> bool:
    """True if a token may hold the end of a word and a space after it."""
    added = tokenizer.get_added_tokens_decoder().values()
    space = _normalized(tokenizer, "a b")[-2]
    for token in added:
        spaces = f"[ {space}]" if token.normalized else " "
        if re.search(
            _LETTER + (spaces if not token.rstrip else rf"(?:{spaces}|\Z)"), token.content
        ):
            return True
    merged = tokenizer.get_vocab(with_added_tokens=False).keys() - {
        token.content for token in added
    }
    return bool(_REACHES_ACROSS.search(_as_lines(merged))) and not _splits_words(tokenizer)


def _as_lines(tokens: Iterable[str]) -> str:
    """The tokens as text, a line each; a character of which a token has a part is U+FFFD."""
    from tokenizers.decoders import ByteLevel

    lines = (part for token in tokens for part in (token, _NEW_LINE))
    return str(ByteLevel().decode(list(lines)))  # leaves tokens that are not byte-level as they are


def _splits_words(tokenizer: Any) -> bool:
    """True if the pre-tokenizer begins a piece at every space between two of Unicode's letters."""
    if tokenizer.pre_tokenizer is None:
        return False
    letters = re.findall(_LETTER, "".join(map(chr, range(sys.maxunicode + 1))))
    text = _normalized(tokenizer, " ".join(letters))
    pieces = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    return not any(_REACHES_ACROSS.search(text[start:end]) for _, (start, end) in pieces)


def _normalized(tokenizer: Any, text: str) -> str:
    return str(tokenizer.normalizer.normalize_str(text)) if tokenizer.normalizer else text
