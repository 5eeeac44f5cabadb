"""`gistmill prompts import-readagent`, on notebooks of the authors' shape in words of our own."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.prompts import Prompt
from pipeline.core.settings import CONF
from pipeline.families.family import Family, load_family
from stages.prompts.parsing.passages import Passage
from stages.prompts.readagent.answer import AnswerQuestion
from stages.prompts.readagent.break_point import BreakPoint, Labelled
from stages.prompts.readagent.gist import ShortenPage
from stages.prompts.readagent.look_up_p import ParallelLookUp
from stages.prompts.readagent.look_up_s import SequentialLookUp
from tests.support.command import gistmill, refused, succeed

ROOTS = [CONF / "prompts"]
PAGINATE = """
Lines of a text follow, with labels such as <4> between them. {{Braces}} {{% if %}} {{# stay #}}.
Say where to stop: "Break point: <4>\\n Because ..."

Text:

{0}
{1}
{2}

"""
SHORTEN = "\nMake this short.\n\nText:\n{}\n\n"
LOOK_UP = """
This is what you recall. You may see 1 to 6 page(s) of it again.
To see Page 8 say "I want to look up Page [8] to ..."; for two,
"I want to look up Page [7, 12] to ...".
Do not ask for more than it takes, and do not answer yet.

Text:
{}

Question:
{}
{}

Which page(s) do you want?
"""
ANSWER = '\nRead this and choose, as in "Answer: (C) ...".\n\nText:\n{}\n\nQuestion:\n{}\n{}\n\n'
STRINGS = {
    "prompt_pagination_template": PAGINATE,
    "prompt_shorten_template": SHORTEN,
    "prompt_lookup_template": LOOK_UP,
    "prompt_answer_template": ANSWER,
}
MEMORY = (Passage("gist", 0, "The village wakes."), Passage("page", 1, "The bell rings."))
UNTAGGED = (Passage("gist", None, "The village wakes."), Passage("page", None, "The bell rings."))


def code(*lines: str) -> dict[str, Any]:
    """A code cell, its source in lines as Jupyter writes it."""
    text = "\n".join(lines)
    return {"cell_type": "code", "source": text.splitlines(keepends=True), "outputs": []}


def assigning(strings: dict[str, str]) -> list[dict[str, Any]]:
    return [code("import re", f"{name} = {text!r}") for name, text in strings.items()]


def written(folder: Path, *cells: dict[str, Any]) -> Path:
    file = folder / "demo.ipynb"
    file.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 0}))
    return file


def imported(folder: Path, *cells: dict[str, Any]) -> tuple[dict[str, Any], Family]:
    done = succeed("prompts", "import-readagent", written(folder, *cells), folder / "new", "--json")
    return json.loads(done), load_family(folder / "new", ROOTS)


def text(family: Family, prompt: Prompt[Any]) -> str:
    (message,) = family.render(prompt)
    return message["content"]


@pytest.fixture
def theirs(tmp_path: Path) -> Family:
    return imported(tmp_path, *assigning(STRINGS))[1]


def test_pages_are_cut_and_shortened_with_the_notebooks_texts(theirs: Family) -> None:
    paragraphs = (Labelled("Noon.", None), Labelled("Dusk.", 2), Labelled("Night.", 3))
    cut = BreakPoint("Morning.", paragraphs, "Then it rains.\n...")
    passage = "Noon.\nDusk.\n<2>\nNight.\n<3>"
    assert text(theirs, cut) == PAGINATE.format("...\nMorning.", passage, "Then it rains.\n...")
    first = BreakPoint("", paragraphs)
    assert text(theirs, first) == PAGINATE.format("", passage, "")
    assert text(theirs, ShortenPage("It {rains}.\n")) == SHORTEN.format("It {rains}.\n")


def test_questions_are_asked_with_the_notebooks_texts(theirs: Family) -> None:
    options = "(A) the sexton\n(B) nobody"
    look_up = ParallelLookUp(MEMORY, "Who rang?", ("the sexton", "nobody"), max_pages=6)
    recalled = "<Page 0>\nThe village wakes.\n<Page 1>\nThe bell rings."
    assert text(theirs, look_up) == LOOK_UP.format(recalled, "Who rang?", options)
    answer = AnswerQuestion(UNTAGGED, "Who rang?", ("the sexton", "nobody"), answer_words=None)
    read = "The village wakes.\nThe bell rings."
    assert text(theirs, answer) == ANSWER.format(read, "Who rang?", options)


def test_the_number_of_pages_is_the_methods(theirs: Family) -> None:
    two = text(theirs, ParallelLookUp(MEMORY, "Who rang?", (), max_pages=2))
    assert "You may see 1 to 2 page(s) of it again." in two
    assert "Page [7, 12]" in two  # an example is no number of pages


def test_what_the_notebook_lacks_is_ours(theirs: Family, tmp_path: Path) -> None:
    free = AnswerQuestion(MEMORY, "Who rang?", (), answer_words=None)
    ours = load_family(ROOTS[0] / "readagent_quality", ROOTS)
    assert text(theirs, free) == text(ours, free)
    assert theirs.wording == "authors"
    assert theirs.settings == ours.settings
    assert theirs.sources["look_up_s.jinja"] == ours.sources["look_up_s.jinja"]


def test_it_says_what_was_found_and_what_was_not(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": "prompt_gist_template = 'not code'"},
        *assigning({**STRINGS, "prompt_weather_template": "How is it in {}?"}),
        code('prompt_strict_template = f"{question} {answer} {reference}"'),
        code("prompt_permissive_template = '{0} {1} {2}'"),
        code("for in"),
    ]
    made, _ = imported(tmp_path, *cells)
    assert [(one["prompt"], one["cell"], one["added"]) for one in made["found"]] == [
        ("answer", 5, []), ("break_point", 2, []), ("gist", 3, []), ("look_up_p", 4, ["max_pages"]),
    ]  # fmt: skip
    assert made["missing"] == {
        "rate_strict": "readagent", "rate_permissive": "readagent", "look_up_s": "papers"
    }  # fmt: skip
    assert made["left_out"] == [
        "prompt_weather_template of cell 6: its name is that of no prompt of ReadAgent",
        "prompt_strict_template of cell 7: an f-string, whose values only running the code would "
        "tell",
        "prompt_permissive_template of cell 8: has a field {0} of which it is not known what "
        "stands in it",
        "cell 9 is not Python and was not read",
    ]
    assert made["failures"] == []
    lines = succeed("prompts", "import-readagent", tmp_path / "demo.ipynb", tmp_path / "two")
    assert "look_up_s: not found; stays that of the family papers" in lines.splitlines()


def test_no_code_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    evil = code(f"open({str(mark)!r}, 'w')", "raise SystemExit(7)", "!touch " + str(mark))
    made, _ = imported(tmp_path, evil, *assigning(STRINGS))
    assert len(made["found"]) == 4
    assert not mark.exists()


def test_magics_and_other_ways_to_write_a_string(tmp_path: Path) -> None:
    made, family = imported(
        tmp_path,
        code("%%bash", "for in"),
        code("!pip install a", "%cd b", "?help", "re.sub?", "x = 1",
             'prompt_shorten_template = """', "%s is no magic here: {}", '"""'),
        code("%%time", "PROMPT_LOOKUP_TEMPLATE: str = (", repr(LOOK_UP[:9]), f"{LOOK_UP[9:]!r})"),
        {"cell_type": "code", "source": f"prompt_answer_template = {ANSWER!r} + ''"},
    )  # fmt: skip
    assert [one["prompt"] for one in made["found"]] == ["answer", "gist", "look_up_p"]
    assert made["left_out"] == []
    assert text(family, ShortenPage("x")) == "\n%s is no magic here: x\n"


def test_the_later_of_two_counts(tmp_path: Path) -> None:
    other = {"prompt_shorten_template": "Shorter: {page_text}"}
    made, family = imported(tmp_path, *assigning({"gist_prompt": "Short: {}"}), *assigning(other))
    assert text(family, ShortenPage("x")) == "Shorter: x"
    assert made["left_out"] == [
        "gist_prompt of cell 1: prompt_shorten_template of cell 2 comes later"
    ]


def test_named_fields_and_one_page_at_a_time(tmp_path: Path) -> None:
    sequential = (
        "You recall:\n{gists}\n{question}\nPages {pages_read} you have. "
        "Name one more page that you want to see again, or else say STOP. Do not answer yet. "
        "The sooner you know what is asked for the better, so name the best page first:"
    )
    made, family = imported(tmp_path, *assigning({"prompt_sequential_lookup_template": sequential}))
    prompt = SequentialLookUp(MEMORY, "Who rang?", (), (1, 0), ())
    recalled = "<Page 0>\nThe village wakes.\n<Page 1>\nThe bell rings."
    assert text(family, prompt) == sequential.format(
        gists=recalled, question="Who rang?", pages_read="1, 0"
    )
    with_more = SequentialLookUp(MEMORY, "Who rang?", ("a", "b"), (), (9,), "The sexton.")
    shown = text(family, with_more)
    assert "Who rang?\n(A) a\n(B) b\n" in shown
    assert "already: 9\n" in shown and "would be: The sexton.\n" in shown
    assert made["found"][0]["added"] == ["options", "refused, previous_answer, last_was_unread"]


def test_a_family_that_fails_its_check_says_so(tmp_path: Path) -> None:
    short = {"prompt_lookup_template": "{}\n{}\n{}\nWhich of 3 pages?", "prompt_answer_template":
             ANSWER}  # fmt: skip
    file = written(tmp_path, *assigning(short))
    done = gistmill("prompts", "import-readagent", file, tmp_path / "new")
    assert done.returncode == 2
    assert f"to change: {tmp_path}/new: look_up_p: shorter than answer; lengthen it" in done.stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not JSON, so no notebook: Expecting property name"),
        ("[" * 100_000, "not JSON, so no notebook: maximum recursion depth"),
        ("\udcff", "not JSON, so no notebook: 'utf-8' codec"),
        ("[]", "has no list of cells, so no notebook of format 4"),
        ('{"worksheets": [], "nbformat": 3}', "has no list of cells, so no notebook of format 4"),
        ('{"cells": [1]}', "has no list of cells"),
        ('{"cells": []}', "no prompts in its 0 code cells; they are strings named prompt_pag"),
        (json.dumps({"cells": [code("x = 1", "prompt = make()")]}), "no prompts in its 1 code"),
        (
            json.dumps({"cells": [code("my_prompt = 'Say {}'")]}),
            "no string in it can be used: my_prompt of cell 1: its name is that of no prompt",
        ),
        (
            json.dumps({"cells": [code("prompt_shorten_template = '{} {a[0]} {'")]}),
            "prompt_shorten_template of cell 1: is no format string: ",
        ),
        (
            json.dumps({"cells": [code("prompt_shorten_template = '{:>9}'")]}),
            "prompt_shorten_template of cell 1: formats its field {} in a way that is not known",
        ),
        (
            json.dumps({"cells": [code("prompt_answer_template = '{} {}'")]}),
            None,
        ),
        (
            json.dumps({"cells": [code("prompt_answer_template = 'Read: {}'")]}),
            "prompt_answer_template of cell 1: has no field for question",
        ),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used(tmp_path: Path, content: str, says: str | None) -> None:
    file, new = tmp_path / "demo.ipynb", tmp_path / "new"
    file.write_text(content, errors="surrogateescape")
    if says is None:  # a question alone is enough; options stand below it
        succeed("prompts", "import-readagent", file, new)
        return
    line = refused("prompts", "import-readagent", file, new)
    assert line.startswith(f"{file}: ")
    assert says in line
    assert not new.exists()


def test_folders_and_files_that_are_not_there(tmp_path: Path) -> None:
    assert refused("prompts", "import-readagent", tmp_path / "no.ipynb", tmp_path / "new") == (
        f"{tmp_path}/no.ipynb: cannot be read: No such file or directory; name a notebook"
    )
    file = written(tmp_path, *assigning(STRINGS))
    assert refused("prompts", "import-readagent", file, tmp_path).endswith("name a new folder")
