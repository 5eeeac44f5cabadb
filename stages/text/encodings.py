"""Decode bytes of any encoding: by their byte order mark, as UTF-8, as they declare, or as
charset-normalizer detects. UTF-8 comes before the declared encoding: other bytes are hardly ever
valid UTF-8, while declarations are often wrong."""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from charset_normalizer import from_bytes

_MARKS = (  # UTF-32's little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Of <meta charset>, <meta content="text/html; charset=...">, <?xml encoding=...?>, and of the heads
# of Project Gutenberg.
_DECLARED = re.compile(
    rb"""<[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})"""
    rb"|^Character set encoding:[ \t]*([\w.:-]{1,40})",
    re.MULTILINE | re.IGNORECASE,
)
_HEAD_BYTES = 4096
# Encodings that browsers use for these names, by Python's names.
_AS_IN_BROWSERS = {
    "iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874",
    "tis-620": "cp874", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
    "euc_kr": "cp949", "big5": "big5hkscs",
}  # fmt: skip
_PROBE = rb"<p \x41 +AGE-"  # ASCII in every encoding in which a declaration is readable
_SHIFT = re.compile(rb"\x1b\$")  # to two bytes a character, in ISO-2022, whose bytes are all ASCII
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROLS = 0.7  # of every other byte
_SAMPLE_BYTES = 2**16  # given to the detector
_LOST = "\ufffd"
_MOST_LOST = 0.05  # of the characters that are not ASCII, in a declared or detected encoding

_BELOW_A0 = re.compile(rb"[\x80-\x9f]")  # used by cp1250, and not by ISO 8859-2
_TURKISH = re.compile(rb"[\xd0\xdd\xde\xf0\xfd\xfe]")  # letters of cp1254, Icelandic in cp1252
_DOS_AND_MAC = ("mac_roman", "cp850", "cp437", "cp852")
_OTHER_LETTERS = (
    "gb18030", "big5", "big5hkscs", "cp932", "euc_jp", "cp949", "cp1251", "koi8_r", "koi8_u",
    "cp866", "iso8859_5", "mac_cyrillic", "cp1253", "cp1255", "cp1256", "iso8859_6", "cp874",
)  # fmt: skip
_WIDE = ("utf_16_le", "utf_16_be")
# Between small letters these are letters or marks in DOS and Mac encodings, but not in Windows'.
_DOS_OR_MAC = re.compile(rb"[a-z][\x81-\x84\x87\x88\x8a\x8d-\x90\x98\xa1-\xa4\xd0\xd1\xd5][a-z]")
_ASCII, _HIGH_RUN = bytes(range(128)), re.compile(rb"[\x80-\xff]+")
_MOST_OF_LATIN = 0.45  # of bytes that are not ASCII, in texts of Latin letters
_FEW = 3  # bytes that are not ASCII: too few to detect by
_NEAR = 0.03  # an insignificant difference of the detector's measures
_MOST_CHAOS = 0.4  # by the detector's measure: Turkish has over its default of 0.2
_ALMOST_ASCII = 0.01

_C1 = re.compile("[\x80-\x9f]")
_C1_AS_WINDOWS = {n: bytes([n]).decode("cp1252", "replace") for n in range(0x80, 0xA0)}


@dataclass(frozen=True, slots=True)
class Decoded:
    """`num_lost`: the number of U+FFFD that replaced bytes invalid in the encoding."""

    text: str
    encoding: str
    num_lost: int = 0
    is_detected: bool = False

    @property
    def note(self) -> str | None:
        """A line that names doubts about the text and what to do; None if there are none."""
        doubts = []
        if self.is_detected:
            doubts.append(f"its encoding is not certain, read as {self.encoding}")
        if self.num_lost:
            doubts.append(f"bytes that are not {self.encoding} became U+FFFD: {self.num_lost}")
        return f"{'; '.join(doubts)}; save it as UTF-8 if that is wrong" if doubts else None

    def is_mostly_lost(self, most: float) -> bool:
        """True if more than the share `most` of the characters outside ASCII was lost."""
        num_kept = len(self.text) - len(self.text.encode("ascii", "ignore")) - self.num_lost
        return self.num_lost > most * num_kept


def decoded(content: bytes) -> Decoded:
    """The text of a file, with newlines as line ends, without byte order mark and NULs. Raises
    UnicodeError where the bytes are no text of a known encoding."""
    declared = _declared(content)
    if encoding := marked(content):
        whole = _read(content, encoding)
    elif encoding := unmarked_utf_16(content[:_SAMPLE_BYTES]):
        whole = _read(content, encoding, is_detected=True)
    elif content.isascii():
        seven_bits = next((name for name in declared if name.startswith(("iso2022", "hz"))), None)
        is_shifted = not seven_bits and _SHIFT.search(content) is not None
        encoding = seven_bits or ("iso2022_jp_2" if is_shifted else "utf-8")
        whole = _read(content, encoding, is_shifted)
    else:
        for encoding, most_lost in (("utf-8", 1.0), *((name, _MOST_LOST) for name in declared)):
            whole = _read(content, encoding)
            if not whole.is_mostly_lost(most_lost):
                break
        else:
            whole = _read(content, _detected(content), is_detected=True)
            if whole.num_lost > _MOST_LOST * len(whole.text):
                raise UnicodeError("text of no known encoding")
    text = whole.text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return replace(whole, text=without_c1(text))  # before anything takes U+0085 for white space


def decoded_lines(lines: Iterable[bytes]) -> Iterator[Decoded]:
    """Decode a file line by line, as it is too large to decode as a whole. The first line that is
    not ASCII decides: if it is UTF-8, all lines are read as such; if not, that line and all after
    it are read in one encoding, detected from the first of them. Raises UnicodeError where none
    fits."""
    rest = iter(lines)
    for line in rest:
        as_utf_8 = _read(line, "utf-8")
        if as_utf_8.num_lost:
            break
        yield as_utf_8
        if not line.isascii():
            yield from (_read(line, "utf-8") for line in rest)
    else:
        return
    sample, size = [line], len(line)  # as many lines as are needed to detect an encoding
    while size < _SAMPLE_BYTES and (line := next(rest, b"")):
        sample.append(line)
        size += len(line)
    whole = decoded(b"".join(sample))
    for line in chain(sample, rest):
        yield _read(line, whole.encoding, whole.is_detected and not line.isascii())


def marked(head: bytes) -> str | None:
    """The encoding that a byte order mark states; None without one."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


def unmarked_utf_16(head: bytes) -> str | None:
    """The name of UTF-16's byte order if the bytes are UTF-16 without a mark; None for others.

    In most scripts every other byte of UTF-16 is below 0x20. In the other scripts at least one byte
    in a hundred is a control character, which occurs in no text of another encoding."""
    if len(_CONTROL.findall(head)) * 100 < max(1, len(head)):
        return None
    halves = head[::2], head[1::2]
    evens, odds = (sum(map(half.count, range(0x20))) / max(1, len(half)) for half in halves)
    if len(head) > 3 and min(evens, odds) < _MOST_CONTROLS < max(evens, odds):
        return _WIDE[evens > odds]
    if not _read(head, "utf-8").is_mostly_lost(1.0):
        return None
    best = from_bytes(head, cp_isolation=[*_WIDE], enable_fallback=False).best()
    return best.encoding if best else None


def without_c1(text: str) -> str:
    """The text with Windows-1252's characters in place of control characters C1 (U+0080 to U+009F),
    as in browsers; positions do not change."""
    return text.translate(_C1_AS_WINDOWS) if _C1.search(text) else text


def _read(content: bytes, encoding: str, is_detected: bool = False) -> Decoded:
    try:
        return Decoded(content.decode(encoding), encoding, 0, is_detected)
    except UnicodeError:
        text = content.decode(encoding, "replace")
    num_written = content.count(_LOST.encode()) if encoding == "utf-8" else 0
    return Decoded(text, encoding, text.count(_LOST) - num_written, is_detected)


def _declared(content: bytes) -> list[str]:
    """The usable encodings that the head of a page or book declares."""
    encodings = []
    for match in _DECLARED.finditer(content[:_HEAD_BYTES]):
        stated = (match[1] or match[2]).decode("ascii", "replace").lower().removeprefix("x-")
        try:
            name = codecs.lookup(stated).name
            if _PROBE.decode(name) == _PROBE.decode("ascii"):
                encodings.append(_AS_IN_BROWSERS.get(name, name))
        except (LookupError, UnicodeError, ValueError):
            continue
    return encodings


def _detected(content: bytes) -> str:
    """The best fit among the encodings in use for such bytes. Raises UnicodeError."""
    sample = _head(b"\n".join(line for line in content.split(b"\n") if not line.isascii()))
    runs = _HIGH_RUN.findall(sample)
    num_high = sum(map(len, runs))
    is_single = 2 * sum(len(run) == 1 for run in runs) >= len(runs)
    is_latin = is_single and num_high < _MOST_OF_LATIN * len(sample)
    if num_high > _FEW and not is_latin:
        encoding = _best(_head(content), (*_WIDE, *_OTHER_LETTERS))
    else:
        central = "cp1250" if _BELOW_A0.search(sample) else "iso8859_2"
        west = ("cp1254", "cp1252") if _TURKISH.search(sample) else ("cp1252", "cp1254")
        windows = None if _DOS_OR_MAC.search(sample) else _best(sample, (*west, central), True)
        encoding = windows or _best(sample, _DOS_AND_MAC)
        if len(content.translate(None, _ASCII)) < _ALMOST_ASCII * len(content):
            encoding = encoding or "cp1252"
    if encoding is None:
        raise UnicodeError("text of no known encoding")
    return encoding


def _head(content: bytes) -> bytes:
    """Enough bytes to detect an encoding, cut at the end of a word."""
    head = content[:_SAMPLE_BYTES]
    whole = head[: 1 + max(head.rfind(b" "), head.rfind(b"\n"))]
    return content if len(content) <= _SAMPLE_BYTES else whole or head


def _best(sample: bytes, names: Sequence[str], prefers_first: bool = False) -> str | None:
    """The best of these encodings; the first one if `prefers_first` and another is hardly
    better."""
    fits = from_bytes(sample, cp_isolation=[*names], enable_fallback=False, threshold=_MOST_CHAOS)
    best = fits.best()
    if best is None:
        return None
    for match in fits if prefers_first else ():
        is_near = match.chaos <= best.chaos + _NEAR and match.coherence >= best.coherence
        if names[0] in match.could_be_from_charset and is_near:
            return names[0]
    return best.encoding
