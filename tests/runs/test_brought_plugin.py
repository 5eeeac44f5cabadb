"""A plugin of the engine, the metric, the judge and the extractor of docs/extending.md and of a new
corpus format, in one run: its values in SQL, the report and its table for a paper; what a raised
version makes anew; mistakes."""

import json
import shutil
from pathlib import Path

import pytest

from jobs.plugin.new_plugin import new_plugin
from tests.support import command
from tests.support.command import ROOT, own_process, succeed, succeeded
from tests.support.docs.pages import blocks

EXAMPLES = ("echo.py", "first_letter.py", "fluent.py", "subtitles.py")
LINES = [  # the engine answers "Rivers rise.": the first begins with its R
    "The river rose in spring.\tWhat did the river do?\tRise.",
    "The mill stood still.\tWhat did the mill do?\tIt stood.",
]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("lines.tsv").write_text("\n".join(LINES))
    new_plugin("lines", "corpus")
    folder = Path("lines").rename(tmp_path / "brought_plugin")
    conf = ROOT / "tests" / "support" / "brought_plugin" / "conf"
    shutil.copytree(conf, folder / "conf", dirs_exist_ok=True)
    for code in blocks("docs/extending.md", "python"):
        if (name := code.splitlines()[0].removeprefix("# ")) in EXAMPLES:
            (folder / name).write_text(code)
    return folder


def words(folder: Path, *more: str) -> list[str]:
    return [
        f"plugins={folder / 'brought_plugin'}", "corpus=lines", "engine=echo", "methods=full_text",
        f"corpus.path={folder / 'lines.tsv'}", f"warehouse={folder / 'warehouse'}", "run=own",
        "family=brought", *more,
    ]  # fmt: skip


def measured(folder: Path) -> dict[str, list[float]]:
    """The values of each measure that the plugin makes, by question; SQL needs no plugin."""
    query = """select measure, list(value order by question_id) from measures
    where measure in ('first_letter', 'fluent') group by measure"""
    return dict(command.sql_values(folder / "warehouse", query))


@pytest.mark.slow
@pytest.mark.usefixtures("plugin")
def test_all_of_it_in_one_run(tmp_path: Path) -> None:
    succeeded(own_process("run", *words(tmp_path)))
    assert measured(tmp_path) == {"first_letter": [100, 0], "fluent": [100, 100]}
    folder, table = tmp_path / "warehouse", tmp_path / "table.tex"
    assert command.sql_values(folder, "select distinct engine from calls") == [("echo",)]
    shown = succeed("report", f"warehouse={folder}")
    assert "first_letter" in shown and "fluent" in shown and "accuracy" not in shown
    succeed("export", "report", f"warehouse={folder}", "format=latex", f"to={table}")
    assert r"first\_letter" in table.read_text() and "fluent" in table.read_text()


NEVER = """    def read(self, reply, is_cut):
        return "no"

    def is_right"""
SHOUTED = """class RateFluent(AnswerRater):
    def wanted(self, question, answer):
        return super().wanted(question, answer.upper())

"""
EQUAL, OTHER = (f"answer[:1] {sign} reference[:1]" for sign in ("==", "!="))
LATER: list[tuple[list[tuple[str, str, str]], int, list[int], list[int]]] = [
    # Files with what is replaced by what; then the judge's calls, the metric's and its values.
    ([], 2, [100, 0], [100, 100]),
    ([("first_letter.py", EQUAL, OTHER)], 2, [100, 0], [100, 100]),
    ([("first_letter.py", "version=1", "version=2")], 2, [0, 100], [100, 100]),
    ([("fluent.py", "    def is_right", NEVER),
      ("fluent.py", "version: ClassVar[int] = 1", "version: ClassVar[int] = 2")],
     4, [0, 100], [0, 0]),
    ([("fluent.py", "class RateFluent(AnswerRater):", SHOUTED),
      ("fluent.py", "    version = 1", "    version = 2")], 6, [0, 100], [0, 0]),
]  # fmt: skip


def change(file: Path, old: str, new: str) -> None:
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))


@pytest.mark.slow
def test_what_changed_is_made_anew(plugin: Path, tmp_path: Path) -> None:
    """By its version: a metric without a call, a parser by asking its judge alone."""
    for changes, num_rated, first_letter, fluent in LATER:
        for file, old, new in changes:
            change(plugin / file, old, new)
        succeeded(own_process("run", *words(tmp_path)))
        query = "select stage, count(*) from all_calls group by stage"
        calls = dict(command.sql_values(tmp_path / "warehouse", query))
        assert calls == {"answer": 2, "rate": num_rated}
        assert measured(tmp_path) == {"first_letter": first_letter, "fluent": fluent}
    query = "select distinct messages[-1].content as sent from calls where stage = 'rate'"
    assert all("RIVERS RISE" in row["sent"] for row in command.sql(tmp_path / "warehouse", query))


@pytest.mark.slow
def test_files_of_a_kind_of_its_own(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "one.srt").write_text("0:01 --> 0:02\nThe river rose.\n")
    (tmp_path / "films" / "two.txt").write_text("The mill stood still.\n")
    own = ["corpus=text", f"corpus.path={tmp_path / 'films'}", f"plugins={plugin}",
           "max_problem_rate=1", f"warehouse={tmp_path / 'warehouse'}", "run=films"]  # fmt: skip
    for old, new, read in (
        ("def", "def", "The river rose."),
        ('return Extracted("', 'return Extracted("Scene. " + "', "Scene. The river rose."),
        ('Extracted("Scene. " + ', "str(", None),
    ):
        change(plugin / "subtitles.py", old, new)
        succeeded(own_process("run", *own))
        query = "select text, detail from documents where document_id = 'one'"
        (row,) = command.sql(tmp_path / "warehouse", query)
        assert (row["text"].strip() or None) == read
    assert "its extractor returned str; return Extracted" in row["detail"]


NO_SCORES = ("'much'", "None", "101", "-1", "float('nan')", "True", "1 / 0", "refuse()")
RAISED = {"1 / 0": "division by zero", "refuse()": "RefusedError: not this one"}
REFUSE = """class RefusedError(Exception):
    pass

def refuse():
    raise RefusedError("not this one")

"""
WRONG = """

@metric("wrong_{number}", version=1)
def wrong_{number}(answer: str, reference: str) -> float:
    \"\"\"No score.\"\"\"
    return {value}
"""


@pytest.mark.slow
def test_what_makes_no_value_costs_no_other(plugin: Path, tmp_path: Path) -> None:
    """A metric that makes no score, a judge that reads another label than yes, partially or no."""
    wrong = {f"wrong_{number}": value for number, value in enumerate(NO_SCORES)}
    with (plugin / "first_letter.py").open("a") as file:
        file.write(REFUSE)
        file.writelines(WRONG.format(number=n, value=value) for n, value in enumerate(NO_SCORES))
    named = f"[first_letter, {', '.join(wrong)},"
    change(plugin / "conf" / "prompts" / "brought" / "family.yaml", "[first_letter,", named)
    change(plugin / "fluent.py", "    def is_right", NEVER.replace('"no"', "4"))
    succeeded(own_process("run", *words(tmp_path, "max_problem_rate=1")))
    rows = command.sql(tmp_path / "warehouse", "select metric, value, problem, detail from scores")
    others = [row for row in rows if row["metric"] not in wrong]
    assert {row["problem"] for row in others} == {None}
    assert [row["value"] for row in others if row["metric"] == "squad_em"] == [0, 0]
    assert measured(tmp_path)["first_letter"] == [100, 0]
    for metric, value in wrong.items():
        failed = [row for row in rows if row["metric"] == metric]
        assert [(row["value"], row["problem"]) for row in failed] == [(None, "unit_failed")] * 2
        told = RAISED.get(value, f"{metric} returned")
        assert all("first_letter.py" in row["detail"] and told in row["detail"] for row in failed)
    rows = command.sql(tmp_path / "warehouse", "select value, problem, detail from ratings")
    assert [(row["value"], row["problem"]) for row in rows] == [(None, "unit_failed")] * 2
    assert all("KeyError: 4" in row["detail"] for row in rows)


@pytest.mark.slow
def test_they_are_listed_and_described(plugin: Path) -> None:
    plugins = f"plugins={plugin}"
    listed = json.loads(succeeded(own_process("ls", plugins, "--json")))
    assert "lines" in [row["name"] for row in listed["corpus"]]
    for kind, name, about in (
        ("metrics", "first_letter", "100 where answer and reference begin with the same letter"),
        ("rubrics", "fluent", "Whether the answer is fluent English"),
        ("engine", "echo", "Says yes to judges"),
    ):
        (row,) = [row for row in listed[kind] if row["name"] == name]
        assert row["about"].startswith(about)
        assert about in succeeded(own_process("schema", name, plugins))


MISTAKES = [  # file, what is replaced, by what, and the line that says what is wrong
    ("echo.py", 'Literal["echo"]', 'Literal["openai"]',
     "EchoSettings is the engine 'openai', which is that of pipeline.engines.openai."),
    ("first_letter.py", '"first_letter"', '"fluent"', "the measure 'fluent', which is that of"),
    ("first_letter.py", ", version=1", "", "the metric first_letter has no version; write"),
    ("fluent.py", '{"fluent"', '{"strict"', "judges by the rubric 'strict', which is that of"),
    ("fluent.py", '"judge_fluent"', '"judge_generic"', "is the prompt 'judge_generic', which is"),
    ("subtitles.py", '"srt"', '"pdf"', "reads files that end in .pdf, which is that of"),
    ("subtitles.py", '"srt"', '".srt"', "the extractor of '.srt': write small letters and digits"),
    ("lines.py", '"lines"', '"qmsum"', "LinesCorpus reads the format 'qmsum', which is"),
    ("conf/engine/echo.yaml", "name: echo", "name: ecko", "engine.name=ecko: no such choice;"),
    ("conf/prompts/brought/family.yaml", "[first_letter", "[first_leter",
     "'first_leter' is none of"),
    ("lines.py", 'line.split("\\t")', 'line.split(";")',
     "LinesCorpus.load: ValueError: not enough values to unpack"),
    ("lines.py", "text)", "' ')", "LinesCorpus.load: BadInputError: the text has no words"),
    ("lines.py", 'Loaded(self.document(f"d{number}", text), (question,))', "(question,)",
     "LinesCorpus.load: item 0: tuple, not Loaded(document, (question, ...))"),
    ("lines.py", "question=asked", "question=None",
     "question: Input should be a valid string, not None"),
    ("lines.py", '"q{number}"', '"q"', "load: item 1: another question 'q' came before"),
    ("lines.py", '"d{number}", text', '"d", text',
     "question 'q0': its document_id is not the document's"),
    ("lines.py", "yield", "return", "load: TypeError: 'Loaded' object is not iterable"),
    ("echo.py", "return Echo()", "raise KeyError('token')", "Settings.start: KeyError: 'token' ("),
    ("echo.py", "async def count_tokens", "async def count",
     "start returned Echo, without count_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "told"), MISTAKES)
def test_a_mistake_is_one_line(
    plugin: Path, tmp_path: Path, file: str, old: str, new: str, told: str
) -> None:
    """Also of a loader that raises or yields something else, and an engine that cannot start."""
    change(plugin / file, old, new)
    done = own_process("run", *words(tmp_path, "cluster=inline"))
    (line,) = [x for x in done.stderr.splitlines() if not x.startswith(("reading", "  "))]
    assert line.startswith("gistmill: ") and told in line
    assert "brought_plugin" in line or "yaml" in file or line.startswith("gistmill: engine=echo: ")
    assert done.returncode in ((1, 2) if "engine=echo" in line else (2,))
