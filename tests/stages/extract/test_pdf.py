"""PDFs, drawn word by word: heads and feet, columns, notes, verse, lists, tables."""

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from matplotlib import get_data_path
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from stages.extract import pdf_pages
from stages.extract.extracted import UnreadableError
from stages.extract.pdf import pdf_text
from tests.support.texts.documents import pdf, scan

Text = tuple[float, float, str]
"""From the left, from the foot, in points; and the words, with `*` before bold ones."""
Rule = tuple[float, float, float, float]
PROSE = (
    "The keeper climbed the tower every evening at six",
    "and carried oil in a tin can up the winding stairs",
    "until the ninth of March, when the stairs gave way",
    "below him and nobody in the village heard his calls",
)


def drawn(
    *pages: Sequence[Text], size: float = 10, rules: Sequence[Rule] = (), font: str = "Helvetica"
) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(600, 800), invariant=1)
    for page in pages:
        for left, bottom, words in page:
            name = "Helvetica-Bold" if words.startswith("*") else font
            canvas.setFont(name, size * (0.8 if words.startswith("~") else 1))
            canvas.drawString(left, bottom, words.lstrip("*~"))
        for rule in rules:
            canvas.line(*rule)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


@pytest.fixture(autouse=True, scope="module")
def dejavu() -> None:
    pdfmetrics.registerFont(TTFont("DejaVu", Path(get_data_path(), "fonts/ttf/DejaVuSans.ttf")))


def lines(*words: str, left: float = 60, top: float = 700) -> list[Text]:
    return [(left, top - 12 * number, line) for number, line in enumerate(words)]


def read(content: bytes) -> list[str]:
    return pdf_text(content).text.split("\n\n")


def prose(page: int) -> list[Text]:
    """The same lines on every page, at other heights."""
    return lines(*PROSE[page % 4 :], *PROSE[: page % 4])


TITLES = ("The stairs", "The lamp", "The oil", "The village")
EXERCISES = [f"Exercise {n}: the {what}" for n, what in enumerate(
    ("tower", "stairs", "oil", "bread", "lamp", "village", "boat", "rope"), 1)]  # fmt: skip
CHAPTERS = ["2 The Tower", "The Fall 3", "4 The Tower", "The Rescue 5", "6 The Tower"]
# What is drawn; what of it is text, and what is not.
HEADS: dict[str, tuple[list[list[Text]], Sequence[str], Sequence[str]]] = {
    "what recurs is none, whole or in part": (
        [[(60, 760, "The Coast Gazette"), (480, 760, f"Vol. {n // 2}"), *prose(n),
          (60, 652, f"It was day {n * n}."), (300, 40, f"- {n} -")] for n in range(1, 5)],
        ["It was day 9."], ["Gazette", "Vol.", "- 2 -"]),
    "that of a chapter of one page, beside its number, is none": (
        [lines("THE START", *PROSE), *([(60, 760, head), *lines(f"Page {n} says:", *PROSE)]
                                       for n, head in enumerate(CHAPTERS))],
        ["THE START", "Page 1 says:"], ["The Fall", "The Rescue", "The Tower"]),
    "titles of slides beside one are text": (
        [[(60, 760, "Coast Gazette"), (300, 760, title), *prose(n)]
         for n, title in enumerate(TITLES)], TITLES, ["Gazette"]),
    "names behind a label are text, as is their row": (
        [[(60, 760, "Keeper:"), (300, 760, title), *prose(n)] for n, title in enumerate(TITLES)],
        [f"Keeper: {title}" for title in TITLES], []),
    "headings with numbers that go up with the pages are text": (
        [[(60, 760, head), *prose(n)] for n, head in enumerate(EXERCISES)], EXERCISES, []),
}  # fmt: skip


@pytest.mark.parametrize("case", HEADS)
def test_running_heads(case: str) -> None:
    pages, kept, gone = HEADS[case]
    text = " ".join(read(drawn(*pages)))
    assert [words for words in kept if words not in text] == []
    assert [words for words in gone if words in text] == []


@pytest.mark.parametrize(
    ("feet", "is_kept"),
    [
        (["1"], False), (["Page 1 of 1"], False), (["iii", "iv", "v"], False), (["17"], True),
        # What stands at one height but neither recurs nor counts.
        (["1851", "1853", "1857"], True), (["17 pounds", "25 pounds", "90 pounds"], True),
        *(([letter], True) for letter in "\u0130\u0131\u017f"),  # they only look Roman
    ],
)  # fmt: skip
def test_numbers_of_pages_are_left_out(feet: Sequence[str], is_kept: bool) -> None:
    pages = [[*lines(f"Part {'abc'[n]}", *PROSE), (60, 40, foot)] for n, foot in enumerate(feet)]
    text = f" {' '.join(read(drawn(*pages, font='DejaVu')))} "
    assert [f" {foot} " in text for foot in feet] == [is_kept] * len(feet)
    assert all(f"Part {'abc'[n]}" in text for n in range(len(feet)))


def page_of(name: str, num: int, changed: int = -1) -> list[str]:
    """So many lines, each of its own; that at `changed` is of no other page."""
    ends = ("the stairs", "the lamp", "oil", "bread", "a rope", "the door", "a storm")
    return [f"{'No' if line == changed else name} {chr(97 + line)} said of {ends[line % 7]} that it"
            " was as he had left it" for line in range(num)]  # fmt: skip


A, B, C = page_of("Anna", 4), page_of("Bert", 4), page_of("Cleo", 3)
LONG, OTHER = page_of("Anna", 24), page_of("Bert", 24)


@pytest.mark.parametrize(
    "pages",
    [
        (A, A, C), (C, A, A, B, page_of("Dora", 4)), (LONG, LONG, OTHER), (A, C, A, C), (A, A, A),
        (A, page_of("Anna", 4, changed=1)), (LONG, page_of("Anna", 24, changed=20), OTHER),
        ([*LONG[:6], *OTHER[6:]], LONG, page_of("Cleo", 24)),  # the first lines of two pages
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_numbered", [False, True])
def test_copies_of_a_page_have_no_heads(pages: Sequence[Sequence[str]], is_numbered: bool) -> None:
    numbers = [[(300.0, 40.0, str(place))] if is_numbered else [] for place in range(1, 6)]
    content = drawn(*([*lines(*page), *number] for page, number in
                      zip(pages, numbers, strict=False)))  # fmt: skip
    text = " ".join(pdf_text(content).text.split())
    assert text == " ".join(line for page in pages for line in page)


def test_a_page_of_nothing_but_its_head_is_kept() -> None:
    head = (60.0, 760.0, "The Coast Gazette")
    pages = [[head, *lines(*page_of(name, 9))] for name in "PQR"]
    assert " ".join(read(drawn(*pages, [head]))).count("Gazette") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (("under exten\u2010", "sive repair"), "under extensive repair"),
        (("under exten\xad", "sive repair"), "under extensive repair"),
        (("by Jean\u2010", "Paul"), "by Jean-Paul"),
        (("by Jean-", "Paul"), "by Jean-Paul"),
        (("AN EXTEN-", "SIVE REPAIR"), "AN EXTENSIVE REPAIR"),
        (("the Wert\xadpapier\xadindex",), "the Wertpapierindex"),
        (("a \ufb01ne o\ufb03ce \ufb02oor",), "a fine office floor"),
        (("Zoe\u0308 of Malmo\u0308", "to Jo\u0302me"), "Zo\xeb of Malm\xf6 to J\xf4me"),
        (("it was \u2010", "so he said"), "it was \u2010 so he said"),
    ],
)
def test_words_are_whole(text: Sequence[str], words: str) -> None:
    assert " ".join(pdf_text(drawn(lines(*text), font="DejaVu")).text.split()) == words


@pytest.mark.parametrize("hyphen", ["-", "\xad", "\u2010"])
def test_a_word_cut_by_a_pages_end_is_whole_after_any_hyphen(hyphen: str) -> None:
    pages = [lines(*PROSE, f"in the midst of the exten{hyphen}", top=160), lines("sive repairs.")]
    assert read(drawn(*pages, font="DejaVu"))[0].endswith("midst of the extensive repairs.")


def test_columns_that_are_written_across_are_told_apart() -> None:
    left = [f"{'abcdefghij'[n]} line of the left column" for n in range(10)]
    right = [f"{'klmnopqrst'[n]} line of the right one" for n in range(10)]
    rows = [line for n in range(10) for line in
            ((60, 700 - 12 * n, left[n]), (320, 700 - 12 * n, right[n]))]  # fmt: skip
    title = (60, 740, "A title that goes across both of the columns of this page of the gazette")
    text = " ".join(pdf_text(drawn([title, *rows])).text.split())
    assert text.endswith(" ".join([*left, *right]))


WHOLE = " ".join(PROSE)
CUT = [(60, 60, "~1 So the keeper's own book has it."), (60, 50, "~It is lost.")]
VERSE = ["Full fathom five,", "Thy father lies;", "Of his bones", "Are coral made;"]
BEGIN = PROSE[0][:40]
ROWS = [("Post", "Garrison", "Miles"), ("Bridge", "two men", "0"), ("Depot", "none", "30")]


def cells(rows: Sequence[Sequence[str]]) -> list[Text]:
    return [(60 + 120 * column, 640 - 20 * row, text)
            for row, texts in enumerate(rows)
            for column, text in enumerate(texts) if text]  # fmt: skip


GRID = [*((55, 655 - 20 * n, 415, 655 - 20 * n) for n in range(4)),
        *((55 + 120 * n, 655, 55 + 120 * n, 595) for n in range(4))]  # fmt: skip
FRAME = [(50, 650, 550, 650), (50, 720, 550, 720), (50, 650, 50, 720), (550, 650, 550, 720)]
# A row of two lines, whose cells the rules tell apart.
WRAPPED = [(60, 626, "Owl Creek"), (180, 626, "two men"),
           (60, 617, "bridge"), (180, 617, "and a dog")]  # fmt: skip
# What is drawn on each page, the rules there, and what is read.
PARTS: dict[str, tuple[Sequence[Sequence[Text]], Sequence[Rule], list[str]]] = {
    "a note cuts no paragraph": (
        [[*lines(*PROSE, "and the oil", top=160), *CUT], lines("ran out. So it", *PROSE[2:])], [],
        [f"{WHOLE} and the oil ran out. So it {PROSE[2]} {PROSE[3]}",
         "1 So the keeper's own book has it. It is lost."]),
    "without a gap they end where a line has room": (
        [lines(*PROSE, "for a day.", *PROSE, "again.")], [],
        [f"{WHOLE} for a day.", f"{WHOLE} again."]),
    "lines of verse and of an address stay lines": (
        [[*lines(*PROSE, "says:"), *lines(*VERSE, top=620), *lines(*PROSE, "again.", top=550)]],
        [], [f"{WHOLE} says:", "\n".join(VERSE), f"{WHOLE} again."]),
    "indented lines begin them": (
        [[(75, 700, BEGIN), *lines(PROSE[1], PROSE[2], top=688), (75, 664, BEGIN),
          *lines(PROSE[1], top=652)]],
        [], [f"{BEGIN} {PROSE[1]} {PROSE[2]}", f"{BEGIN} {PROSE[1]}"]),
    "hanging lines do not": (
        [[*lines(PROSE[0]), *lines(PROSE[1], f"{PROSE[2]}.", left=75, top=688),
          *lines(PROSE[0], top=664), *lines(PROSE[1], left=75, top=652)]],
        [], [f"{PROSE[0]} {PROSE[1]} {PROSE[2]}.", f"{PROSE[0]} {PROSE[1]}"]),
    "a bold line is a heading of the lowest level": (
        [[*lines("*On the Stairs", top=712), *lines(*PROSE)]], [], ["# On the Stairs", WHOLE]),
    "but not with a full stop": (
        [lines("*Note that it is bold.", *PROSE)], [], ["Note that it is bold.", WHOLE]),
    "rules say which lines are of one cell": (
        [[*lines(*PROSE), *cells([ROWS[0], ("", "", "0"), ("", "none", "30|31")]), *WRAPPED,
          (440, 640, "beside")]], GRID,
        [WHOLE, "| Post | Garrison | Miles |\n| --- | --- | --- |\n"
         "| Owl Creek bridge | two men and a dog | 0 |\n|  | none | 30\\|31 |", "beside"]),
    "rows without rules are no table": (
        [[*lines(*PROSE), *cells(ROWS), *lines(*PROSE, top=560)]], [],
        [WHOLE, *map(" ".join, ROWS), WHOLE]),
    "text in a frame is no table": ([lines(*PROSE)], FRAME, [WHOLE]),
}  # fmt: skip


@pytest.mark.parametrize("case", PARTS)
def test_paragraphs_and_tables(case: str) -> None:
    pages, rules, expected = PARTS[case]
    assert read(drawn(*pages, rules=rules)) == expected


@pytest.mark.parametrize("error", [TypeError("'PDFObjRef' object is not iterable"), None])
def test_where_no_tables_can_be_looked_for_their_words_are_read(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """None: the time for it is over."""
    import pdfplumber

    def fails(content: object) -> None:
        assert error
        raise error

    if error:
        monkeypatch.setattr(pdfplumber, "open", fails)
    else:
        monkeypatch.setattr(pdf_pages, "_SECONDS", 0.0)
    extracted = pdf_text(drawn(cells(ROWS), rules=GRID))
    assert extracted.text.split() == " ".join(map(" ".join, ROWS)).split()
    assert extracted.missing == "no tables looked for in 1 of 1 pages (1)"


def test_the_lines_of_a_turned_page_are_whole() -> None:
    """Drawn along the paper's long side, as wide tables are."""
    content = io.BytesIO()
    canvas = Canvas(content, pagesize=(600, 800))
    canvas.setPageRotation(90)
    canvas.translate(600, 0)
    canvas.rotate(90)
    for number, line in enumerate(PROSE):
        canvas.drawString(60, 500 - 14 * number, line)
    canvas.save()
    paragraphs = read(content.getvalue())
    assert " ".join(" ".join(paragraphs).split()) == " ".join(PROSE)
    assert len(paragraphs) <= len(PROSE)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (scan(3), "no text in the 3 pages of this PDF"),
        (pdf(["One."], password="secret"), "an encrypted PDF; save it without a password"),
        (pdf(["One."])[:100], "damaged, or no PDF ("),
        (b"", "damaged, or no PDF ("),
    ],
)
def test_what_is_no_pdf_with_text_says_why(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        pdf_text(content)
    assert str(caught.value).startswith(said)
