"""A user's own prompt family: what it leaves out is generic's; what is wrong is named; the examples
of replies that its prompts show, and the replies that repeat them."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.resolved_run import read_run
from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS, Prompt
from pipeline.core.settings import CONF
from pipeline.families.family import Family, load_family
from pipeline.work.check_family import check_family
from stages.prompts.readagent_look_up import ParallelLookUp
from stages.prompts.readagent_memory import BreakPoint, PageGist
from tests.support.command import gistmill, refused
from tests.support.reading import family
from tests.support.reading import written_family as written

SHIPPED = [CONF / "prompts"]


def loaded(folder: Path) -> Family:
    return load_family(folder, SHIPPED)


def content(own: Family, prompt: Prompt[Any]) -> str:
    (message,) = own.render(prompt)
    return message["content"]


def test_what_it_has_goes_before_generics(tmp_path: Path) -> None:
    """Its words of refusals may be of another language."""
    folder = written(
        tmp_path, wording="authors", reply_tokens={"gist": 99},
        forms={"look_up_s": "I want page {}"},
        settings={"min_words": 300}, judging={"score": None},
        refusals={"look_up_p": {"negations": ["keine"], "needed": ["seite"]}},
    )  # fmt: skip
    (folder / "gist.jinja").write_text("Cut it down: {{ page }}")
    own, generic, prompt = loaded(folder), family(), ParallelLookUp.samples()[0]
    declined = "Ich brauche keine weitere Seite."
    assert own.read(prompt, declined, is_cut=False) == ()
    assert generic.read(prompt, declined, is_cut=False) is None
    assert (own.wording, generic.wording) == ("authors", "ours")
    assert own.max_reply_tokens(PageGist) == 99
    assert own.form(PROMPTS["look_up_s"]) == "I want page {}"
    assert (own.settings["min_words"], own.settings["max_words"]) == (300, 600)
    assert own.judging == {"score": {}}
    assert content(own, PageGist("A page.")) == "Cut it down: A page."

    def parts(whose: Family, prompt: type[Prompt[Any]]) -> list[Any]:
        rendered = [*map(whose.render, prompt.samples())]
        return [whose.form(prompt), whose.max_reply_tokens(prompt), rendered]

    changed = {name for name, of in PROMPTS.items() if parts(own, of) != parts(generic, of)}
    assert changed == {"gist", "look_up_s"}
    assert {name for name, of in PROMPTS.items() if own.sha(of) != generic.sha(of)} == {"gist"}


def test_a_template_may_say_the_reply_budget_and_needs_no_file_once_loaded(tmp_path: Path) -> None:
    folder = written(tmp_path, reply_tokens={"gist": 99})
    (folder / "gist.jinja").write_text("In {{ max_reply_tokens }} tokens: {{ page }}")
    assert check_family(folder, SHIPPED) == []
    sent = [(pickle.dumps(load_family(folder, SHIPPED, more)), tokens)
            for more, tokens in ((None, 99), ({"gist": 5}, 5))]  # fmt: skip
    shutil.rmtree(folder)
    for own, tokens in sent:
        text = content(pickle.loads(own), PageGist("A page."))
        assert text == f"In {tokens} tokens: A page."


def test_generic_beside_a_family_goes_before_the_shipped_one(tmp_path: Path) -> None:
    """Who copies conf/prompts changes generic's copy for all of them."""
    shutil.copytree(CONF / "prompts" / "generic", tmp_path / "generic")
    (tmp_path / "generic" / "gist.jinja").write_text("Theirs: {{ page }}")
    folder = written(tmp_path, "wording: ours")
    assert content(loaded(folder), PageGist("A page.")) == "Theirs: A page."


def based(folder: Path, name: str, text: str) -> Path:
    (folder / name).mkdir()
    (folder / name / "family.yaml").write_text(text)
    return folder / name


def test_what_a_family_leaves_out_is_its_bases_then_generics(tmp_path: Path) -> None:
    text = "settings: {answer_words: 7, min_words: 9}\nreply_tokens: {gist: 50}"
    (based(tmp_path, "short", text) / "gist.jinja").write_text("Cut: {{ page }}")
    own = loaded(based(tmp_path, "mine", "base: [short, qmsum]\nsettings: {min_words: 8}"))
    ours, generic = family("qmsum"), family("generic")
    assert own.settings == {**ours.settings, "answer_words": 7, "min_words": 8}
    assert own.max_reply_tokens(PageGist) == 50
    assert own.form(BreakPoint) == ours.form(BreakPoint) == "Label: <{}>"
    assert content(own, PageGist("A page.")) == "Cut: A page."
    assert own.sha(BreakPoint) == ours.sha(BreakPoint) != generic.sha(BreakPoint)
    assert own.sha(ParallelLookUp) == generic.sha(ParallelLookUp)
    assert check_family(tmp_path / "mine", SHIPPED) == []


def test_a_bases_base_and_a_family_named_like_its_base(tmp_path: Path) -> None:
    based(tmp_path, "first", "base: narrativeqa_movie\nsettings: {tail_words: 1}")
    own = loaded(based(tmp_path, "second", "base: first"))
    assert (own.settings["tail_words"], own.settings["max_words"]) == (1, 1000)
    own = loaded(based(tmp_path, "qmsum", "base: qmsum\nsettings: {answer_words: 3}"))
    assert own.settings == {**family("qmsum").settings, "answer_words": 3}


THERE = "no such prompt; nearest: "


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("base: nosuch", "base: no family 'nosuch'; there are chats, generic, govreport"),
        ("base: [qmsum, nosuch]", "base: no family 'nosuch'; there are chats, generic"),
        ("base: [7]", "base.0: Input should be a valid string"),
        ("page: 0", "page: Extra inputs are not permitted"),
        ("wording: theirs", "wording: Input should be 'ours' or 'authors'"),
        ("reply_tokens: {gist: 0}", "reply_tokens.gist: Input should be greater than 0"),
        ("reply_tokens: {look_up: 128}", f"reply_tokens.look_up: {THERE}"),
        ("forms: {rate: '{}'}", f"forms.rate: {THERE}"),
        ("forms: {answer: 'Answer: (X)'}", "forms.answer: write {} once, where the value goes"),
        ("forms: {gist: 'Gist: {}'}", "forms.gist: replies are free text; remove the form"),
        ("refusals: {rate: {}}", f"refusals.rate: {THERE}"),
        ("refusals: {look_up_p: {negations: [no]}}", "refusals.look_up_p.negations.0: Input"),
        ("examples: {rate_strict: [{reply: 'YES', reads: yes}]}", "examples.rate_strict.0.reads"),
        ("first: [", "not YAML: "),
        ("- 1", "the file: Input should be a valid dictionary"),
        ("settings: {answer_word: 40}", "settings.answer_word: no stage has such a setting"),
        ("settings: {answer_words: '40'}", "settings.answer_words: Input should be a valid int"),
        ("settings: {first_page: 2}", "settings.first_page: Input should be less than or equal to"),
        ("settings: {min_words: 700}", "settings: min_words 700 is over max_words 600; lower it"),
        ("settings: {label_rule: first}", "settings.label_rule: Input should be 'within_limits'"),
        ("settings: {metrics: [squad]}", "settings.metrics: 'squad' is none of rouge1_stem"),
        ("judging: {scores: {}}", "judging: scores: no stage 'scores'; there"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, text: str, complaint: str) -> None:
    folder = written(tmp_path, text)
    done = gistmill("prompts", "check", folder)
    (line,) = (done.stdout or done.stderr.removeprefix("gistmill: ")).splitlines()
    assert done.returncode == 2 and line.startswith(f"{folder / 'family.yaml'}: {complaint}")


@pytest.mark.parametrize("text", ["page: 0", "settings: {min_words: 700}", "judging: {scores: {}}"])
def test_a_run_is_refused_in_the_words_of_the_check(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path, text)
    checked = gistmill("prompts", "check", folder)
    told = refused("run", "corpus=demo", f"family={folder}", f"warehouse={tmp_path / 'w'}")
    assert f"{told}\n" == checked.stdout or f"gistmill: {told}\n" == checked.stderr


def test_a_file_that_is_missing_or_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no family\.yaml there"):
        loaded(tmp_path)
    folder = written(tmp_path, "wording: ours")
    (folder / "gist.jinja").write_bytes(b"\xff{{ page }}")
    with pytest.raises(UsageError, match=r"gist\.jinja: not UTF-8 \(invalid start byte\); save it"):
        loaded(folder)


ESCAPES = [
    "{{ ''.__class__.__mro__ }}", "{{ ''|attr('__class__') }}",
    "{{ question.__init__.__globals__ }}", "{{ lipsum.__globals__['os'].popen('id') }}",
    "{{ '{a.__class__}'.format_map({'a': question}) }}", "{% include '../../family.yaml' %}",
    "{% import 'os' as os %}", "{% for n in range(1000000000) %}{% endfor %}", "{{ 1 / 0 }}",
    "{{ 'a'.encode().decode('nope') }}", "{% include 'answer.jinja' %}",
    "{{ 'a' * 1000000000000 }}",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("template", ESCAPES)
def test_a_template_reaches_its_fields_alone(tmp_path: Path, template: str) -> None:
    """One line that names the file, at the start of a run or where it is rendered."""
    folder = written(tmp_path, "# mine")
    (folder / "answer.jinja").write_text(template)
    with pytest.raises(UsageError) as raised:
        family = read_run(["corpus=demo", f"family={folder}"]).family
        [family.render(sample) for sample in PROMPTS["answer"].samples()]
    line = str(raised.value)
    assert "\n" not in line and line.startswith(str(folder)), line
    assert "uid=" not in line and "root:" not in line


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
    folder = written(tmp_path, "wording: ours")
    (folder / f"{prompt}.jinja").write_text(template)
    assert loaded(folder).examples(PROMPTS[prompt]) == expected


def test_a_reply_or_its_first_line_repeats_an_example(tmp_path: Path) -> None:
    folder = written(tmp_path, "wording: ours")
    (folder / "answer.jinja").write_text("Answer: (C)")
    own = loaded(folder)
    for reply in ("Answer: (C)", ' "answer: (c)" \n', "**Answer:   (C)**\nThe text says so."):
        assert own.is_example(PROMPTS["answer"], reply), reply
    for reply in ("Answer: (B)", "Answer: (C) as the text says", "It says so.\nAnswer: (C)", ""):
        assert not own.is_example(PROMPTS["answer"], reply), reply
