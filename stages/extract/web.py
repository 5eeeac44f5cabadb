"""Text of web pages (HTML, XHTML), in any encoding."""

import codecs
import re

from stages.extract.extracted import Extracted
from stages.text.article_text import html_text

# Of <meta charset>, <meta content="text/html; charset=..."> and <?xml encoding=...?>.
_DECLARED = re.compile(rb"""<[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""")
_HEAD_BYTES = 4096
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"),
          (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
_ESCAPE = b"\x1b"  # of ISO-2022, whose bytes are all ASCII


def web_text(content: bytes) -> Extracted:
    """The text of a page; empty where it has none."""
    return Extracted(html_text(decoded_html(content)))


def decoded_html(content: bytes) -> str:
    """The text of the bytes: by their byte order mark, as UTF-8, as what the page declares, or as
    Windows-1252, the first of these that fits. A page that is UTF-8 by chance is none in practice,
    while declarations are often wrong."""
    declared = [found[1].decode("ascii", "replace") for found in
                _DECLARED.finditer(content[:_HEAD_BYTES])]  # fmt: skip
    by_mark = [name for mark, name in _MARKS if content.startswith(mark)]
    first = declared if _ESCAPE in content else []
    for name in (*by_mark, *first, "utf-8", *declared, "cp1252"):
        try:
            return _lines(content.decode(name))
        except (LookupError, UnicodeError, ValueError):
            continue
    return _lines(content.decode("latin-1"))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
