"""Numbers of pages in Chinese numerals, 一 to 九十九, as digits."""

import re

_UNITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_NUMERALS = "零〇一二三四五六七八九两十百千万"
_NUMERAL = re.compile(f"[{_NUMERALS}]+")
_TENS = re.compile(r"([一二三四五六七八九]?)(?:十([一二三四五六七八九]?)|(?<=.)[零〇])")
_LISTED = rf"\s\d\[\]()（）【】<>《》、,，和与及或到至—~\-{_NUMERALS}"
# A list of pages, 第三、五页, or one that is a whole reply; 第一次 is none.
_PAGES = re.compile(rf"第[第{_LISTED}]{{1,200}}[页頁]|\A[{_LISTED}]+[。.]?\Z")


def with_digits(text: str) -> str:
    """The text with the numbers of pages in digits. A numeral over 99, and one that may be two
    (一二), stays as it is."""
    return _PAGES.sub(lambda pages: _NUMERAL.sub(_digits, pages[0]), text)


def _digits(found: re.Match[str]) -> str:
    if found[0] in _UNITS:
        return str(_UNITS[found[0]])
    tens = _TENS.fullmatch(found[0])
    return str(10 * _UNITS.get(tens[1], 1) + _UNITS.get(tens[2], 0)) if tens else found[0]
