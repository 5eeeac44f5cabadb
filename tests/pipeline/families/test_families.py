"""A user's own prompt family: what it leaves out is generic's; what is wrong is named."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.graph.read_run import read_run
from pipeline.core.errors import UsageError
from pipeline.core.prompts import PROMPTS
from pipeline.core.settings import CONF
from pipeline.families.family import Family, load_family
from pipeline.work.check_family import check_family
from stages.prompts.answer import AnswerQuestion
from stages.prompts.readagent_look_up import ParallelLookUp
from stages.prompts.readagent_memory import BreakPoint, PageGist
from tests.support.command import gistmill
from tests.support.reading import family
from tests.support.reading import written_family as written

SHIPPED = [CONF / "prompts"]


def loaded(folder: Path) -> Family:
    return load_family(folder, SHIPPED)


def checked(folder: Path) -> list[str]:
    return check_family(folder, SHIPPED)


def refused(folder: Path) -> str:
    with pytest.raises(UsageError) as raised:
        load_family(folder, SHIPPED)
    line = str(raised.value)
    assert "\n" not in line
    return line.removeprefix(f"{folder / 'family.yaml'}: ")


@pytest.mark.parametrize("line", ["settings: {answer_words: 7}", "wording: authors", "# all of it"])
def test_one_line_is_a_family(tmp_path: Path, line: str) -> None:
    folder = written(tmp_path, line)
    own, generic = loaded(folder), family("generic")
    words = 7 if "answer_words" in line else 40
    assert own.settings == {**generic.settings, "answer_words": words}
    assert own.wording == ("authors" if "authors" in line else "ours")
    assert own.judging == generic.judging == {"rate": {}, "score": {}}
    for prompt in PROMPTS.values():
        assert own.max_reply_tokens(prompt) == generic.max_reply_tokens(prompt)
        assert own.form(prompt) == generic.form(prompt)
        assert own.sha(prompt) == generic.sha(prompt)
        for sample in prompt.samples():
            assert own.render(sample) == generic.render(sample)
    assert checked(folder) == []


def test_its_refusals_may_be_in_another_language(tmp_path: Path) -> None:
    words = {"look_up_p": {"negations": ["keine"], "needed": ["seite"]}}
    own, prompt = loaded(written(tmp_path, refusals=words)), ParallelLookUp.samples()[0]
    declined = "Ich brauche keine weitere Seite."
    assert own.read(prompt, declined, is_cut=False) == ()
    assert family("generic").read(prompt, declined, is_cut=False) is None


def test_what_it_has_goes_before_generics(tmp_path: Path) -> None:
    folder = written(
        tmp_path, reply_tokens={"gist": 99}, forms={"look_up_s": "I want page {}"},
        settings={"min_words": 300}, judging={"score": None},
    )  # fmt: skip
    (folder / "gist.jinja").write_text("Cut it down: {{ page }}")
    own = loaded(folder)
    assert own.max_reply_tokens(PageGist) == 99
    assert own.max_reply_tokens(AnswerQuestion) == 512
    assert own.form(PROMPTS["look_up_s"]) == "I want page {}"
    assert own.form(BreakPoint) == "Break point: <{}>"
    assert (own.settings["min_words"], own.settings["max_words"]) == (300, 600)
    assert own.judging == {"score": {}}
    (message,) = own.render(PageGist("A page."))
    assert message["content"] == "Cut it down: A page."
    assert own.sha(PageGist) != family().sha(PageGist)
    assert own.sha(ParallelLookUp) == family().sha(ParallelLookUp)
    assert checked(folder) == []


def test_a_template_may_say_the_reply_budget(tmp_path: Path) -> None:
    folder = written(tmp_path, reply_tokens={"gist": 99})
    (folder / "gist.jinja").write_text("In {{ max_reply_tokens }} tokens: {{ page }}")
    for own, tokens in ((loaded(folder), 99), (load_family(folder, SHIPPED, {"gist": 5}), 5)):
        (message,) = own.render(PageGist("A page."))
        assert message["content"] == f"In {tokens} tokens: A page."
    assert checked(folder) == []


def test_generic_beside_a_family_goes_before_the_shipped_one(tmp_path: Path) -> None:
    """Who copies conf/prompts changes generic's copy for all of them."""
    shutil.copytree(CONF / "prompts" / "generic", tmp_path / "generic")
    (tmp_path / "generic" / "gist.jinja").write_text("Theirs: {{ page }}")
    folder = written(tmp_path, "wording: ours")
    (message,) = loaded(folder).render(PageGist("A page."))
    assert message["content"] == "Theirs: A page."


def test_a_family_needs_no_files_once_it_is_loaded(tmp_path: Path) -> None:
    folder = written(tmp_path, reply_tokens={"gist": 99})
    (folder / "gist.jinja").write_text("Cut: {{ page }}")
    sent = pickle.dumps(loaded(folder))
    shutil.rmtree(folder)
    (message,) = pickle.loads(sent).render(PageGist("A page."))
    assert message["content"] == "Cut: A page."


def test_a_key_of_no_family(tmp_path: Path) -> None:
    folder = written(tmp_path, metrics=["rouge1_stem"])
    assert refused(folder) == "metrics: Extra inputs are not permitted"
    done = gistmill("prompts", "check", folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gistmill: {folder / 'family.yaml'}: {refused(folder)}\n"
    assert "no family.yaml there" in refused(tmp_path / "nowhere")


def based(folder: Path, name: str, text: str, **templates: str) -> Path:
    (folder / name).mkdir()
    (folder / name / "family.yaml").write_text(text)
    for prompt, template in templates.items():
        (folder / name / f"{prompt}.jinja").write_text(template)
    return folder / name


def test_what_a_family_leaves_out_is_its_bases_then_generics(tmp_path: Path) -> None:
    based(tmp_path, "short", "settings: {answer_words: 7, min_words: 9}\nreply_tokens: {gist: 50}",
          gist="Cut: {{ page }}")  # fmt: skip
    own = loaded(based(tmp_path, "mine", "base: [short, qmsum]\nsettings: {min_words: 8}"))
    ours, generic = family("qmsum"), family("generic")
    assert own.settings == {**ours.settings, "answer_words": 7, "min_words": 8}
    assert own.max_reply_tokens(PageGist) == 50
    assert own.form(BreakPoint) == ours.form(BreakPoint) == "Label: <{}>"
    (message,) = own.render(PageGist("A page."))
    assert message["content"] == "Cut: A page."
    assert own.sha(BreakPoint) == ours.sha(BreakPoint) != generic.sha(BreakPoint)
    assert own.sha(ParallelLookUp) == generic.sha(ParallelLookUp)
    assert own.settings["metrics"] != generic.settings["metrics"]
    assert checked(tmp_path / "mine") == []


def test_a_bases_base_and_a_family_named_like_its_base(tmp_path: Path) -> None:
    based(tmp_path, "first", "base: narrativeqa_movie\nsettings: {tail_words: 1}")
    own = loaded(based(tmp_path, "second", "base: first"))
    assert (own.settings["tail_words"], own.settings["max_words"]) == (1, 1000)
    own = loaded(based(tmp_path, "qmsum", "base: qmsum\nsettings: {answer_words: 3}"))
    assert own.settings == {**family("qmsum").settings, "answer_words": 3}


def test_a_changed_base_changes_the_family(tmp_path: Path) -> None:
    base = based(tmp_path, "short", "settings: {answer_words: 7}", gist="Cut: {{ page }}")
    folder = based(tmp_path, "mine", "base: short")
    before = loaded(folder).hashed()
    (base / "family.yaml").write_text("settings: {answer_words: 6}")
    assert loaded(folder).hashed()["settings"] != before["settings"]
    (base / "gist.jinja").write_text("Shorter: {{ page }}")
    after = loaded(folder).hashed()["templates"]
    assert [name for name in after if after[name] != before["templates"][name]] == ["gist.jinja"]


@pytest.mark.parametrize(
    ("base", "complaint"),
    [
        ("nosuch", "base: no family 'nosuch'; there are chats, generic, govreport"),
        ("[qmsum, nosuch]", "base: no family 'nosuch'; there are chats, generic"),
        ("mine", "base: mine -> mine is a circle; remove one of them"),
        ("other", "base: mine -> other -> mine is a circle; remove one of them"),
        ("[7]", "base.0: Input should be a valid string"),
    ],
)
def test_a_wrong_base_is_named(tmp_path: Path, base: str, complaint: str) -> None:
    based(tmp_path, "other", "base: mine")
    folder = written(tmp_path, f"base: {base}")
    assert refused(folder).startswith(complaint)
    for words in (("prompts", "check", folder), ("run", f"family={folder}", "methods=gist_only")):
        done = gistmill(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr.startswith(f"gistmill: {folder / 'family.yaml'}: {complaint}")


THERE = "no such prompt; nearest: "


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("page: 0", "page: Extra inputs"),
        ("wording: theirs", "wording: Input should be 'ours' or 'authors'"),
        ("settings: [1]", "settings: Input should be a valid dictionary"),
        ("reply_tokens: {gist: 0}", "reply_tokens.gist: Input should be greater than 0"),
        ("reply_tokens: {look_up: 128}", f"reply_tokens.look_up: {THERE}"),
        ("forms: {rate: '{}'}", f"forms.rate: {THERE}"),
        ("forms: {answer: 'Answer: (X)'}", "forms.answer: write {} once, where the value goes"),
        ("forms: {gist: 'Gist: {}'}", "forms.gist: replies to this prompt are free text; remove"),
        ("refusals: {rate: {}}", f"refusals.rate: {THERE}"),
        ("refusals: {look_up_p: {negations: [no]}}", "refusals.look_up_p.negations.0: Input"),
        ("examples: {rate_strict: [{reply: 'YES', reads: yes}]}",
         "examples.rate_strict.0.reads: YAML reads yes and no as booleans; put them in quotes"),
        ("first: [", "not YAML: "),
        ("- 1", "the file: Input should be a valid dictionary"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, text: str, complaint: str) -> None:
    assert refused(written(tmp_path, text)).startswith(complaint)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    folder = written(tmp_path, "wording: ours")
    (folder / "gist.jinja").write_bytes(b"\xff{{ page }}")
    with pytest.raises(UsageError, match=r"gist\.jinja: not UTF-8 \(invalid start byte\); save it"):
        loaded(folder)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"answer_word": 40}, ".answer_word: no stage has such a setting; remove it"),
        ({"answer_words": "40"}, ".answer_words: Input should be a valid integer"),
        ({"first_page": 2}, ".first_page: Input should be less than or equal to 1"),
        ({"min_words": 700}, ": min_words 700 is over max_words 600; lower it"),
        ({"label_rule": "first"}, ".label_rule: Input should be 'within_limits' or 'notebook'"),
        ({"answer_page_tags": "no"}, ".answer_page_tags: Input should be a valid boolean"),
        ({"metrics": ["squad"]}, ".metrics: 'squad' is none of rouge1_stem"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, settings: dict[str, Any], complaint: str) -> None:
    folder = written(tmp_path, settings=settings)
    (line,) = checked(folder)
    assert line.startswith(f"{folder / 'family.yaml'}: settings{complaint}")
    done = gistmill("run", "corpus=demo", f"family={folder}", f"warehouse={tmp_path / 'w'}")
    assert (done.returncode, done.stderr) == (2, f"gistmill: {line}\n")


def test_a_judge_that_is_no_stage_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path, judging={"scores": {}})
    (line,) = checked(folder)
    assert line.startswith(f"{folder / 'family.yaml'}: judging: scores: no stage 'scores'; there")


ESCAPES = [
    "{{ ''.__class__.__mro__ }}",
    "{{ ''|attr('__class__') }}",
    "{{ question.__init__.__globals__ }}",
    "{{ lipsum.__globals__['os'].popen('id') }}",
    "{{ '{a.__class__}'.format_map({'a': question}) }}",
    "{% include '../../family.yaml' %}",
    "{% import 'os' as os %}",
    "{% for n in range(1000000000) %}{% endfor %}",
    "{{ 1 / 0 }}",
    "{{ 'a'.encode().decode('nope') }}",
    "{% include 'answer.jinja' %}",
    "{{ 'a' * 1000000000000 }}",
]


def template_refused(folder: Path, template: str, *words: str) -> str:
    """The line about a family whose template of answers is this one."""
    (folder / "answer.jinja").write_text(template)
    with pytest.raises(UsageError) as raised:
        read_run(["corpus=demo", *words])
    line = str(raised.value)
    assert "\n" not in line and line.startswith(str(folder)), line
    return line


@pytest.mark.slow
def test_a_template_reaches_its_fields_alone(tmp_path: Path) -> None:
    """One line that names the file, before anything runs."""
    folder = written(tmp_path, "# mine")
    for template in ESCAPES:
        line = template_refused(folder, template, f"family={folder}")
        assert "uid=" not in line and "root:" not in line


def test_a_plugins_template_is_one_like_any(tmp_path: Path) -> None:
    root = tmp_path / "escaping_family" / "conf" / "prompts"
    root.mkdir(parents=True)
    words = ("family=mine", f"plugins={tmp_path / 'escaping_family'}")
    line = template_refused(written(root, "# mine"), ESCAPES[0], *words)
    assert line.endswith("access to attribute '__class__' of 'str' object is unsafe.")
