"""The prompt families: all pass their own check, and the check finds what is broken."""

import shutil
from pathlib import Path

import pytest
from stages.fields import (
    PROMPTS,
    AnswerQuestion,
    BreakPoint,
    Labelled,
    ParallelLookUp,
    Passage,
    SequentialLookUp,
    ShortenPage,
)

from pipeline.errors import UsageError
from pipeline.family import PARSERS, SAMPLES, check_family, load_family, rendered_values
from pipeline.prompts import Family, Fields

PROMPTS_FOLDER = Path(__file__).parent.parent / "conf" / "prompts"
FOLDERS = sorted(path.parent for path in PROMPTS_FOLDER.glob("*/family.yaml"))
NAMES = [
    *("generic", "longmemeval", "narrativeqa_gutenberg", "narrativeqa_movie", "qmsum"),
    "quality",
]
PASSAGES = (
    Passage("gist", 0, "The village wakes up."),
    Passage("page", 1, "The bell rings twelve times."),
    Passage("gist", 2, "Nobody admits it."),
)
QUESTION = "Who rang the bell?"
OPTIONS = ("the sexton", "nobody", "a child", "the wind")

each_family = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def text(folder: Path, fields: Fields) -> str:
    (message,) = Family(folder).render(fields)
    assert message["role"] == "user"
    return message["content"]


def shared_prefix(*texts: str) -> str:
    ends = (i for i, chars in enumerate(zip(*texts, strict=False)) if len(set(chars)) > 1)
    return texts[0][: next(ends)]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A copy of generic to break."""
    return Path(shutil.copytree(FOLDERS[0], tmp_path / "generic"))


def test_the_families_are_there() -> None:
    assert [folder.name for folder in FOLDERS] == NAMES
    assert {fields.prompt for fields in SAMPLES} == set(PROMPTS)


@each_family
def test_family_passes_its_check(folder: Path) -> None:
    assert check_family(folder) == []


@each_family
def test_family_holds_only_what_differs(folder: Path) -> None:
    for template in folder.glob("*.jinja"):
        generic = FOLDERS[0] / template.name
        assert folder == FOLDERS[0] or template.read_bytes() != generic.read_bytes()
        assert folder == FOLDERS[0] or not template.name.startswith(
            "_"
        )  # no part of a prompt's sha


@each_family
def test_family_brings_examples_for_every_parser(folder: Path) -> None:
    examples = load_family(folder).examples
    assert set(examples) == set(PARSERS)
    for prompt, replies in examples.items():
        assert len(replies) >= 4, prompt
        assert any(set('*`"_\n') & set(example.reply) for example in replies), prompt


def test_published_settings() -> None:
    """ReadAgent table 10."""
    words = {f.name: load_family(f).pagination for f in FOLDERS}
    published = {name: (w.min_words, w.max_words) for name, w in words.items()}
    assert published == {
        "generic": (280, 600),
        "quality": (280, 600),
        "qmsum": (280, 600),
        "narrativeqa_gutenberg": (500, 3000),
        "narrativeqa_movie": (600, 1000),
        "longmemeval": (280, 600),  # not in the table: generic's
    }


@each_family
def test_look_up_and_answer_share_memory_and_question(folder: Path) -> None:
    for options in ((), OPTIONS):
        prompts = [
            text(folder, ParallelLookUp(PASSAGES, QUESTION, options, max_pages=3)),
            text(folder, SequentialLookUp(PASSAGES, QUESTION, options, (1,), ())),
            text(folder, AnswerQuestion(PASSAGES, QUESTION, options, answer_words=30)),
        ]
        shared = shared_prefix(*prompts)
        assert shared.index("<Page 0>\nThe village wakes up.") < shared.index("<Page 2>\nNobody")
        assert shared.rstrip().endswith(options[-1] if options else QUESTION)


@each_family
def test_an_expanded_page_changes_nothing_before_it(folder: Path) -> None:
    gists = (*PASSAGES[:2], Passage("page", 2, "The sexton shrugs."))
    first = text(folder, SequentialLookUp(PASSAGES, QUESTION, (), (), ()))
    then = text(folder, SequentialLookUp(gists, QUESTION, (), (2,), ()))
    assert shared_prefix(first, then).endswith("<Page 2>\n")


@each_family
@pytest.mark.parametrize("options", [(), OPTIONS[:2], OPTIONS])
@pytest.mark.parametrize("passages", [(), PASSAGES, (Passage("text", None, "The bell rings."),)])
def test_look_up_prompt_bounds_the_answer_prompt(
    folder: Path, options: tuple[str, ...], passages: tuple[Passage, ...]
) -> None:
    answer = text(folder, AnswerQuestion(passages, QUESTION, options, answer_words=10_000))
    for max_pages in range(1, 7):
        look_up = text(folder, ParallelLookUp(passages, QUESTION, options, max_pages))
        assert len(look_up) >= len(answer)


@each_family
def test_text_and_closed_book(folder: Path) -> None:
    whole = text(folder, AnswerQuestion((Passage("text", None, "Bells."),), QUESTION, (), 30))
    assert "Bells." in whole
    assert "<Page" not in whole
    closed = text(folder, AnswerQuestion((), QUESTION, (), 30))
    assert closed.startswith(f"Question: {QUESTION}\n")
    assert "not at hand" in closed
    assert "not at hand" not in whole


NASTY = (
    "{{ question }} {% raw %} {# note #} <5> Page [3] & 'q' \"d\" \\n <script>\n\n  two\tlines  "
)


@each_family
def test_values_are_verbatim(folder: Path) -> None:
    for fields in (
        BreakPoint(NASTY, (Labelled(NASTY, 4),)),
        ShortenPage(NASTY),
        ParallelLookUp((Passage("gist", 0, NASTY),), NASTY, (NASTY,), 2),
        SequentialLookUp((Passage("page", 0, NASTY),), NASTY, (NASTY,), (0,), (8,)),
        AnswerQuestion((Passage("text", None, NASTY),), NASTY, (NASTY,), 30),
    ):
        rendered = text(folder, fields)
        assert NASTY in rendered
        assert all(value in rendered for value in rendered_values(fields))


@each_family
def test_no_number_of_a_missing_page_or_label(folder: Path) -> None:
    for fields in SAMPLES:
        assert "None" not in text(folder, fields)


def test_check_reports_a_lost_value(broken: Path) -> None:
    (broken / "gist.jinja").write_text("Shorten this page.")
    (line,) = check_family(broken)
    assert line.startswith(f"{broken}: gist: ")
    assert line.endswith("is not in the rendered prompt")


@pytest.mark.parametrize(
    "template",
    [
        "{{ pages }}",
        "{% for %}",
        "{% if page %}",
        '{% from "_nowhere.jinja" import it %}{{ page }}',
        "{{ page + 1 }}",
        "{{ page | upside_down }}",
    ],
)
def test_check_reports_a_broken_template(broken: Path, template: str) -> None:
    (broken / "gist.jinja").write_text(template)
    lines = check_family(broken)
    assert lines
    assert all("gist" in line for line in lines)


def test_check_reports_a_broken_example(broken: Path) -> None:
    path = broken / "family.yaml"
    path.write_text(path.read_text().replace('"<8>", reads: 8', '"<8>", reads: 57'))
    assert check_family(broken) == [f"{path}: examples.break_point[3]: read 8, expected 57"]


@pytest.mark.parametrize(
    ("form", "broken_form", "complaint"),
    [
        ('break_point: "Break point: <{}>"', 'break_point: "I pause after {}"',
         "break_point: 'I pause after 0' is read as None, not 0"),
        ('break_point: "Break point: <{}>"', 'break_point: "Break point: <{}>, not label: 7"',
         "break_point: 'Break point: <0>, not label: 7' is read as 7, not 0"),
        ('look_up_p: "I want to look up Page [{}]"', 'look_up_p: "Pages {}"',
         "look_up_p: 'Pages ' is read as None, not ()"),
        ('look_up_p: "I want to look up Page [{}]"', 'look_up_p: "See [1]: Page [{}]"',
         "look_up_p: 'See [1]: Page []' is read as (1,), not ()"),
        ('look_up_p: "I want to look up Page [{}]"', 'look_up_p: "[{}0]"',
         "look_up_p: '[0]' is read as (0,), not ()"),
        ('look_up_s: "Page {}"', 'look_up_s: "Number {}"',
         "look_up_s: 'Number 0' is read as None, not 0"),
        ('look_up_s: "Page {}"', 'look_up_s: "No STOP yet, but Page {}"',
         "look_up_s: 'No STOP yet, but Page 0' is read as stop, not 0"),
        ('answer: "Answer: ({})"', 'answer: "I choose {}"',
         "answer: 'I choose A' is read as None, not 0"),
        # All but A and I, which are words, can be read in it.
        ('answer: "Answer: ({})"', 'answer: "{} That one"',
         "answer: 'A That one' is read as None, not 0"),
    ],
)  # fmt: skip
def test_check_reports_a_form_that_is_not_read(
    broken: Path, form: str, broken_form: str, complaint: str
) -> None:
    path = broken / "family.yaml"
    assert path.read_text().count(form) == 1
    path.write_text(path.read_text().replace(form, broken_form))
    assert check_family(broken) == [f"{path}: forms.{complaint}"]


def test_check_reports_a_short_look_up_prompt(broken: Path) -> None:
    source = (broken / "look_up_p.jinja").read_text()
    head = source[: source.index("Leave the question")]
    (broken / "look_up_p.jinja").write_text(head + "{{ max_pages }}")
    assert check_family(broken) == [
        f"{broken}: look_up_p: shorter than answer, with options",
        f"{broken}: look_up_p: shorter than answer, without options",
    ]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("answer_words: 40", "answer_words: 0", "answer_words: "),
        ("answer_words: 40", "answer_word: 40", "answer_words: Field required"),
        ("words: ours", "words: theirs", "words: "),
        ("first_page: 0", "first_page: 2", "first_page: "),
        ("min_words: 280", "min_words: 700", "pagination: Value error, min_words 700 is above"),
        ("gist: 512", "gist: lots", "reply_tokens.gist: "),
        ("squad_em]", "squad]", "metrics: Value error, squad is none of rouge1_stem"),
        ("  rate_strict:", "  rate:", "examples: Value error, rate is none of break_point"),
        ('"YES", reads: "yes"', '"YES", reads: yes', "examples.rate_strict.0.reads: "),
        ("({})", "(X)", "forms.answer: Value error, write {} once"),
        ("<{}>", "<{}> {}", "forms.break_point: Value error, write {} once"),
        ('  look_up_s: "Page {}"\n', "", "forms.look_up_s: Field required"),
        ("first_page:", "first_page: [", "no YAML: "),
        ("first_page: 0", "page: 0\nfirst_page: 0", "page: Extra inputs"),
    ],
)
def test_bad_settings_name_file_and_key(broken: Path, old: str, new: str, complaint: str) -> None:
    path = broken / "family.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UsageError) as raised:
        load_family(broken)
    assert str(raised.value).startswith(f"{path}: {complaint}")


def test_missing_settings(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"family\.yaml: cannot be read"):
        load_family(tmp_path)
    (tmp_path / "family.yaml").write_text("")
    with pytest.raises(UsageError, match="the file"):
        load_family(tmp_path)
