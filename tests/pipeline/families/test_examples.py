"""The examples of replies that a family's prompts show, and the replies that repeat them."""

from pathlib import Path

import pytest

from pipeline.core.prompts import PROMPTS
from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from tests.support.reading import written_family

BREAK_POINT = """{{ preceding }}{% for part in paragraphs %}{{ part.text }}<{{ part.label }}>
{% endfor %}{{ following }}
Where does the page end? Numbers such as <23> stand where it could, and a page ends at one of them,
"""
TEMPLATES = {  # prompt -> its template, and the lines in it that are examples
    "answer": ("Choose a letter or reply in words.\nAnswer: (C)\n answer:  (d) \n",
               ("Answer: (C)", "answer:  (d)")),
    "break_point": (f"{BREAK_POINT}such as:\nBreak point: <57>\n{{{{ paragraphs[0].label }}}}",
                    ("Break point: <57>",)),
    "look_up_s": ("Reply Page and a number, or:\nSTOP\nPage 6\n", ("Page 6",)),
    "look_up_p": ("I want to look up Page [] as it is enough\n[14, 9]", ("[14, 9]",)),
    "gist": ("Shorten this: {{ page }}\nThe bell rang.", ()),
    "starts_chapter": ("Does it?\nYes\nNo\nNot sure\n", ()),
    "time_range": ('Dates?\n{"start": "2021/03/01", "end": "2021/03/31"}\nN/A',
                   ('{"start": "2021/03/01", "end": "2021/03/31"}',)),
}  # fmt: skip


@pytest.mark.parametrize("prompt", TEMPLATES)
def test_lines_that_are_replies_are_examples(tmp_path: Path, prompt: str) -> None:
    template, expected = TEMPLATES[prompt]
    folder = written_family(tmp_path, "wording: ours")
    (folder / f"{prompt}.jinja").write_text(template)
    assert load_family(folder, [CONF / "prompts"]).examples(PROMPTS[prompt]) == expected


@pytest.mark.parametrize(
    ("reply", "is_example"),
    [
        ("Answer: (C)", True),
        (' "answer: (c)" \n', True),
        ("**Answer:   (C)**\nThe text says so.", True),
        ("Answer: (B)", False),
        ("Answer: (C) as the text says", False),
        ("The text says so.\nAnswer: (C)", False),
        ("", False),
    ],
)
def test_a_reply_or_its_first_line_repeats_an_example(
    tmp_path: Path, reply: str, is_example: bool
) -> None:
    folder = written_family(tmp_path, "wording: ours")
    (folder / "answer.jinja").write_text("Answer: (C)")
    own = load_family(folder, [CONF / "prompts"])
    assert own.is_example(PROMPTS["answer"], reply) == is_example
