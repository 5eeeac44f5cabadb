"""`gistmill prompts check`: it finds what is broken, in prompts of plugins too."""

import json
import shutil
from pathlib import Path

import pytest

from pipeline.core.settings import CONF
from pipeline.work.check_family import check_family
from tests.support.command import ROOT, gistmill, one_line, own_process, succeeded
from tests.support.reading import written_family as written

SHIPPED = [CONF / "prompts"]
PLUGIN = ROOT / "tests" / "support" / "quote_plugin"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A family with templates of its own to break."""
    return Path(shutil.copytree(CONF / "prompts" / "generic", tmp_path / "mine"))


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("Shorten this page.", "is not in the rendered prompt"),
        ("{{ pages }}", "pages"),
        ("{% for %}", "gist.jinja"),
        ('{% from "_nowhere.jinja" import it %}{{ page }}', "_nowhere.jinja"),
    ],
)
def test_a_broken_template_is_found(broken: Path, template: str, complaint: str) -> None:
    (broken / "gist.jinja").write_text(template)
    done = gistmill("prompts", "check", broken, "--json")
    lines = json.loads(done.stdout)["failures"]
    assert done.returncode == 2 and lines
    assert all(line.startswith(str(broken)) and complaint in line for line in lines)


def test_an_example_that_is_read_otherwise_is_found(broken: Path) -> None:
    path = broken / "family.yaml"
    path.write_text(path.read_text().replace('"<8>", reads: 8', '"<8>", reads: 57'))
    assert check_family(broken, SHIPPED) == [  # both prompts have the same examples
        f"{path}: examples.{prompt}[4]: read 8, expected 57"
        for prompt in ("break_point", "break_point_follow_up")
    ]


@pytest.mark.parametrize(
    ("prompt", "form", "complaint"),
    [
        ("break_point", "I pause after {}", "'I pause after 0' is read as None, not 0"),
        ("look_up_p", "[{}0]", "'[0]' is read as (0,), not ()"),
        ("answer", "Not {}", "'Not A' is read as None, not 0"),
    ],
)  # fmt: skip
def test_a_form_that_is_not_read_is_found(
    tmp_path: Path, prompt: str, form: str, complaint: str
) -> None:
    folder = written(tmp_path, forms={prompt: form})
    line = f"{folder / 'family.yaml'}: forms.{prompt}: {complaint}"
    assert check_family(folder, SHIPPED) == [line]


@pytest.mark.slow
def test_the_check_covers_prompts_of_plugins(tmp_path: Path) -> None:
    mine = written(tmp_path, "reply_tokens: {quote: 30}")
    check, plugin = ("prompts", "check", mine), f"plugins={PLUGIN}"
    succeeded(own_process(*check, plugin))
    assert "reply_tokens.quote: no such prompt; nearest: " in one_line(own_process(*check))
    (mine / "quote.jinja").write_text("{{ page }} {{ question }}")
    done = own_process(*check, plugin)
    lost = f"{mine}: quote: '8105' is not in the rendered prompt\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, lost, "")


@pytest.mark.slow
def test_a_plugin_takes_no_template_of_ours(tmp_path: Path) -> None:
    plugin = Path(shutil.copytree(PLUGIN, tmp_path / "my_plugin"))
    own, ours = (root / "prompts" / "generic" / "gist.jinja" for root in (plugin / "conf", CONF))
    own.write_text("{{ page }}")
    line = one_line(own_process("prompts", "check", f"plugins={plugin}"))
    assert line.startswith(f"{own}: a template of that name exists already, {ours}; ")
