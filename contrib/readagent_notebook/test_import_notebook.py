"""The importer, on notebooks in the authors' layout with wording of our own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = str(Path(__file__).with_name("import_notebook.py"))
STRINGS = {
    "prompt_pagination_template": """
Lines of a text follow, with labels such as <4> between them. {{Braces}} {{% if %}} {{# stay #}}.
Say where to stop: "Break point: <4>\\n Because ..."

Text:

{0}
{1}
{2}

""",
    "prompt_shorten_template": "\nMake this short.\n\nText:\n{}\n\n",
    "prompt_lookup_template": """
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
""",
    "prompt_answer_template":
        '\nRead this and choose, as in "Answer: (C) ...".\n\nText:\n{}\n\nQuestion:\n{}\n{}\n\n',
}  # fmt: skip


def code(*lines: str) -> dict[str, Any]:
    """A code cell, its source in lines as Jupyter writes it."""
    return {"cell_type": "code", "source": "\n".join(lines).splitlines(keepends=True)}


def assigning(strings: dict[str, str]) -> list[dict[str, Any]]:
    return [code("import re", f"{name} = {text!r}") for name, text in strings.items()]


def imported(folder: Path, *cells: Any) -> subprocess.CompletedProcess[str]:
    """Run the script on a notebook of these cells; the family is in folder/new."""
    file = folder / "demo.ipynb"
    file.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 0}))
    command = [sys.executable, SCRIPT, str(file), str(folder / "new")]
    return subprocess.run(command, capture_output=True, text=True)


def gistmill(*words: object) -> str:
    command = [sys.executable, "-m", "gistmill", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The first request of each prompt in a run with the family."""
    folder = tmp_path_factory.mktemp("notebook")
    done = imported(folder, *assigning(STRINGS))
    assert done.returncode == 0, done.stderr
    assert "render and all example replies are read" in gistmill("prompts", "check", folder / "new")
    words = (f"family={folder / 'new'}", f"warehouse={folder / 'w'}", "cluster=inline", "limit=1")
    gistmill("run", "corpus=demo", "methods=readagent_p(max_pages=2)", "rater=none", *words)
    query = """select prompt, arg_min(messages[-1].content, started_at) as text from calls
        where prompt <> 'answer' or messages[-1].content like '%(A)%' group by all"""
    rows = json.loads(gistmill("sql", query, f"warehouse={folder / 'w'}", "--json"))
    return {row["prompt"]: row["text"] for row in rows}


def test_prompts_are_the_notebooks_texts(sent: dict[str, str]) -> None:
    literal = {
        "break_point": ["{Braces} {% if %} {# stay #}.", '"Break point: <4>\\n Because ..."'],
        "gist": ["\nMake this short.\n\nText:\n"],
        "look_up_p": ["You may see 1 to 2 page(s)", "Page [7, 12]", "Text:\n<Page 0>\n"],
    }  # fmt: skip
    for prompt, texts in literal.items():
        assert all(text in sent[prompt] for text in texts), sent[prompt]


def test_it_says_what_was_found_and_what_was_not(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    done = imported(
        tmp_path,
        {"cell_type": "markdown", "source": "prompt_gist_template = 'not code'"},
        *assigning({**STRINGS, "prompt_weather_template": "How is it in {}?"}),
        code('prompt_strict_template = f"{question} {answer} {reference}"'),
        code("prompt_permissive_template = '{0} {1} {2}'"),
        code("for in"),
        code(f"open({str(mark)!r}, 'w')", "!touch " + str(mark), "gist_prompt: str = 'Short: {}'"),
    )
    assert done.returncode == 0 and not mark.exists(), "no code is executed"
    assert done.stdout.splitlines()[:-1] == [
        "answer: prompt_answer_template of cell 5",
        "break_point: prompt_pagination_template of cell 2",
        "gist: gist_prompt of cell 10",
        "look_up_p: prompt_lookup_template of cell 4; the template adds max_pages",
        *(f"{prompt}: not found; stays that of the family readagent_quality"
          for prompt in ("rate_strict", "rate_permissive", "look_up_s")),
        "left out: prompt_weather_template of cell 6: its name is that of no prompt of ReadAgent",
        "left out: prompt_strict_template of cell 7: an f-string, whose values only running the "
        "code would tell",
        "left out: prompt_permissive_template of cell 8: has a field {0} of which it is not known "
        "what stands in it",
        "left out: prompt_shorten_template of cell 3: gist_prompt of cell 10 comes later",
    ]  # fmt: skip


def test_magics_and_other_ways_to_write_a_string(tmp_path: Path) -> None:
    answer = STRINGS["prompt_answer_template"]
    sequential = "{gists}\n{question}\nPages {pages_read} you have. Name one more, or say STOP."
    done = imported(
        tmp_path,
        code("%%bash", "for in"),
        code("!pip install a", "%cd b", "?help", "re.sub?", "x = 1",
             'prompt_shorten_template = """', "%s is no magic here: {}", '"""'),
        code("%%time", "PROMPT_LOOKUP_SEQ: str = (", repr(sequential[:9]), f"{sequential[9:]!r})"),
        {"cell_type": "code", "source": f"prompt_answer_template = {answer!r} + ''"},
    )  # fmt: skip
    found = [line.split(":")[0] for line in done.stdout.splitlines() if " of cell " in line]
    assert found == ["answer", "gist", "look_up_s"], done.stdout + done.stderr
    gist = (tmp_path / "new" / "gist.jinja").read_text()
    assert gist.endswith("\n%s is no magic here: {{ page }}\n\n")
    assert "adds options, refused, previous_answer, last_was_unread" in done.stdout


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (1, "no JSON with a list of cells"),
        ([code("x = 1", "prompt = make()")], "no string is named like prompt_gist_template"),
        (assigning({"my_prompt": "Say {}"}), "my_prompt of cell 1: its name is that of no prompt"),
        (assigning({"prompt_gist": "{} {a[0]} {"}), "prompt_gist of cell 1: is no format string: "),
        (assigning({"prompt_gist": "{:>9}"}), "has a field {} of which it is not known"),
        (assigning({"prompt_answer": "Read: {}"}), "has no field for question"),
    ],
)
def test_notebooks_that_cannot_be_used(tmp_path: Path, cells: Any, says: str) -> None:
    (tmp_path / "demo.ipynb").write_text(json.dumps({"cells": cells}))
    command = [sys.executable, SCRIPT, str(tmp_path / "demo.ipynb"), str(tmp_path / "new")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and says in done.stderr
    assert not (tmp_path / "new").exists()
