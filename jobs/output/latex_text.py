"""Texts as LaTeX prints them, and how wide they are there."""

import unicodedata
from dataclasses import dataclass

from jobs.output.cells import on_one_line

# As commands, so that neither ligatures nor the shorthands of babel's languages change them.
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "`": r"\textasciigrave{}", "'": r"\char39{}", "-": r"{-}", "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip

# Widths of Computer Modern Roman of 9 points (cmr9.tfm, rounded up), in its size; spaces as wide as
# they are between words. A larger size is narrower by that measure, and so is Times.
_EM = {sign: em for em, signs in {
    0.29: "!',.:;[]il|", 0.35: " fj-", 0.41: "I()trs", 0.46: "cez", 0.49: "?",
    0.52: '"$*/0123456789\\^_`ago{}~', 0.55: "Jkqvxy", 0.58: "Sbdhnpu", 0.65: "ZL", 0.70: "FEP",
    0.76: "BCTwR", 0.81: "AHNUVXYDG<>", 0.86: "&+=@KOQ#%m", 1.06: "MW",
}.items() for sign in signs}  # fmt: skip
_OTHER = 0.9  # letters with accents
_WIDE = 1.1  # those of Chinese and the like


def escaped(text: str) -> str:
    """The text as LaTeX prints it, on one line."""
    return "".join(_SPECIAL.get(sign, sign) for sign in on_one_line(text))


def ems(text: str) -> float:
    """The width of a text in the size of its font; rather too much than too little."""
    return sum(_EM.get(sign) or _of_other(sign) for sign in on_one_line(text))


def _of_other(sign: str) -> float:
    return _WIDE if unicodedata.east_asian_width(sign) in "WF" else _OTHER


@dataclass(frozen=True)
class Printed:
    """A piece of LaTeX, and its width in ems."""

    tex: str
    width: float

    @classmethod
    def of(cls, text: str) -> "Printed":
        return cls(escaped(text), ems(text))

    def __add__(self, other: "Printed") -> "Printed":
        return Printed(self.tex + other.tex, self.width + other.width)
