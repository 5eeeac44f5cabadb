"""Text of Word files (.docx), by mammoth, which leaves out equations, ruby and some text boxes:
runs and paragraphs are made of them before."""

import io
import re
import zipfile
from collections import Counter, defaultdict
from typing import Any

from stages.extract.archives import Archive
from stages.extract.extracted import EXTRA, Extracted, UnreadableError, extractor
from stages.extract.html_markdown import (
    html_tree,
    markdown,
    xml_bytes,
    xml_elements,
    xml_tree,
)

_XML = (".xml", ".rels")
_PARTS = re.compile(r"(?i)word/(?:document\d*|footnotes|endnotes)\.xml")
# How the parts of an equation stand on a line, as in Word's linear format.
_EQUATIONS = {
    "f": "{num}/{den}", "rad": "{deg}√({e})", "limLow": "{e}_{lim}", "limUpp": "{e}^{lim}",
    "nary": "{chr}{sub}{sup} {e}", "d": "{begChr}{e}{endChr}", "acc": "{e}{chr}",
    "func": "{fName} {e}",
}  # fmt: skip
_SIGNS = {"nary": {"chr": "∫"}, "d": {"begChr": "(", "endChr": ")"}, "acc": {"chr": "\u0302"}}
_GROUPED = {"num": "", "den": "", "lim": "", "sub": "_", "sup": "^"}  # and the sign before it
_BETWEEN = {"d": "|", "mr": ", ", "m": "; ", "eqArr": "; "}  # parts of one name


@extractor("docx")
def word_text(content: bytes) -> Extracted:
    """The text of a .docx: headings, paragraphs, lists, tables and notes, equations on a line, text
    boxes behind the paragraph that has them; without pictures. Embedded objects, charts and
    diagrams are `missing`.

    Raises UnreadableError for one that is torn or encrypted, or where mammoth is not installed.
    """
    try:
        import mammoth
    except ImportError:
        raise UnreadableError(f"a Word file needs mammoth; {EXTRA}") from None
    archive = Archive(content, "Word file")
    if not {"word/document.xml", "[Content_Types].xml"} & archive.names:
        raise UnreadableError("a zip archive, no Word file; unpack it or save it as .docx")
    archive.refuse_large(_XML)
    plain, missing = _plain(content)
    no_pictures = mammoth.images.img_element(lambda image: {})
    html = mammoth.convert_to_html(io.BytesIO(plain), convert_image=no_pictures).value
    text = markdown(html_tree(html))
    if not text:
        raise UnreadableError("no text in this Word file; add it or delete the file")
    return Extracted(text, missing)


def _plain(content: bytes) -> tuple[bytes, str | None]:
    """The file in a form all of whose text mammoth reads, without pictures; and what has none."""
    made, lost = io.BytesIO(), Counter[str]()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in dict.fromkeys(name for name in old.namelist() if name.endswith(_XML)):
            part = old.read(name)
            root = xml_tree(part) if _PARTS.fullmatch(name) else None  # mammoth names damaged ones
            if root is not None:
                lost += _lost(root)
                _lift_text_boxes(root)
                _write_runs(root)
                part = xml_bytes(root)
            new.writestr(name, part)
    named = [f"{kind}: {times}" for kind, times in lost.items()]
    return made.getvalue(), f"not read: {', '.join(named)}" if named else None


def _lost(root: Any) -> Counter[str]:
    """The number of things whose text is not in the file's text, by their kind."""
    objects = xml_elements(root, "OLEObject")
    found = Counter(f"embedded {item.get('ProgID', 'object')}" for item in objects)
    drawn = {"chart": "chart", "relIds": "diagram"}
    return found + Counter({drawn[name]: len(xml_elements(root, name)) for name in drawn})


def _lift_text_boxes(root: Any) -> None:
    """Put what is in text boxes behind the paragraphs that they are in, each once: newer files have
    them in two forms."""
    for box in reversed(xml_elements(root, "txbxContent")):
        host = next(box.iterancestors("{*}p"), None)
        form = next(box.iterancestors("{*}Fallback"), None)
        is_second = form is not None and xml_elements(form.getprevious(), "txbxContent")
        if host is not None and not is_second:
            for block in reversed(box):
                host.addnext(block)
    for box in xml_elements(root, "txbxContent"):
        box.clear()


def _write_runs(root: Any) -> None:
    """Make runs of equations, and of ruby the text that it is above."""
    for ruby in xml_elements(root, "ruby"):
        within = ruby.tag.replace("}ruby", "}ins")  # which mammoth reads on in
        for part in ruby:
            part.tag = within if _name(part) == "rubyBase" else part.tag
        ruby.tag = within
    for equation in xml_elements(root, "oMath"):
        if (host := next(equation.iterancestors("{*}p"), None)) is None:
            continue
        run, above = host.makeelement(f"{host.tag[:-1]}r"), equation.getparent()
        run.append(host.makeelement(f"{host.tag[:-1]}t"))
        run[0].text, run.tail = f" {_linear(equation)} ", equation.tail
        above.replace(equation, run)
        if _name(above) == "oMathPara":
            above.tag = f"{host.tag[:-1]}ins"


def _linear(equation: Any) -> str:
    """The equation, or a part of it, on a line."""
    name = _name(equation)
    if name == "t":
        return equation.text or ""
    fields = defaultdict(str, _SIGNS.get(name, {}))
    between, texts = _BETWEEN.get(name, ""), list[str]()
    for part in equation:
        own = _name(part)
        if own.endswith("Pr"):
            signs = {_name(sign): next(iter(sign.values()), "") for sign in part}
            fields |= {kind: sign for kind, sign in signs.items() if kind in fields}
            continue
        text = _linear(part)
        if own in _GROUPED and text:
            is_one = len(text) == 1 or text.isdigit()
            text = _GROUPED[own] + (text if is_one else f"({text})")
        fields[own] += between * bool(fields[own]) + text
        texts.append(text)
    known = _EQUATIONS.get(name)
    return known.format_map(fields) if known else between.join(texts)


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
