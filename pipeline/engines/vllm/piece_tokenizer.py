"""Token ids of long texts, joined from those of their pieces.

Prompts share most of their text: thirty questions about a book of 100,000 tokens differ in the last
hundred. A text is cut where no token can reach across, so that the joined ids of its pieces are
those of the whole; and a piece that many prompts have is tokenised once.
"""

import re
import threading
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

# A word's last letter, before one space and another word.
_CUT = re.compile(r"[^\W\d_](?= [^\W\d_])")
# In a vocabulary: a token with a space after another character, which may reach across that.
# The space of byte-level BPE is U+0120 (line ends and tab U+010A, U+010D, U+0109), SentencePiece's
# is U+2581.
_REACHES_ACROSS = re.compile("[^\\s\u0120\u010a\u010d\u0109\u2581][ \u0120\u2581]")
# An added token that begins or ends with a letter may take a space of its neighbours.
_TAKES_A_SPACE = re.compile(r"\A[^\W\d_]|[^\W\d_] ?\Z")
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
    """A tokenizer by pieces that equals this one of `transformers`; None if there is none: one that
    is not of the library `tokenizers`, no BPE, or has tokens across words.

    BPE makes a token of two neighbours only if the whole is in the vocabulary: where no token can
    reach across a place, what is before it and what is after it are tokenised alike apart.
    """
    shared = getattr(tokenizer, "backend_tokenizer", None)
    if shared is None or type(shared.model).__name__ != "BPE":
        return None
    backend = type(shared).from_str(shared.to_str())  # others set the truncation of theirs
    backend.no_truncation()
    backend.no_padding()
    added = {token.content for token in backend.get_added_tokens_decoder().values()}
    merged = "\n".join(backend.get_vocab(with_added_tokens=False).keys() - added)
    if _REACHES_ACROSS.search(merged) or any(
        _CUT.search(text) or _TAKES_A_SPACE.search(text) for text in added
    ):
        return None
    whole = backend.encode(_PROBE, add_special_tokens=False).ids
    for drops_space in (False, True):
        if list(PieceTokenizer(backend, drops_space, piece_chars=0).ids(_PROBE)) == whole:
            return PieceTokenizer(backend, drops_space)
    return None
