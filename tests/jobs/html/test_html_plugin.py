"""The page of a run whose methods are a plugin's, with the plugin and without it. In processes of
its own, as what a plugin brings is known to a process for good."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.html.test_html import chunk
from tests.support.command import ROOT, own_process, succeeded

PLUGIN = ROOT / "tests" / "support" / "quote_plugin"
_MAKE = """
import sys
from pathlib import Path
from tests.support.runs.page_run import finished, write_corpus
folder = Path(sys.argv[1])
write_corpus(folder / "corpus", 1)
finished(folder, "engine=extractive", f"plugins={sys.argv[2]}", methods="quotes(top_k=2)")
"""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quotes")
    subprocess.run([sys.executable, "-c", _MAKE, folder, PLUGIN], cwd=ROOT, check=True)
    return folder / "warehouse"


@pytest.mark.slow
@pytest.mark.parametrize("is_loaded", [True, False])
def test_rows_of_a_plugin_are_shown_with_and_without_it(
    warehouse: Path, tmp_path: Path, is_loaded: bool
) -> None:
    file = tmp_path / "page.html"
    words = [f"plugins={PLUGIN}"] if is_loaded else []
    succeeded(own_process("report", f"html={file}", f"warehouse={warehouse}", *words))
    part = chunk(file.read_text(encoding="utf-8"), "part-0")
    question = part["questions"]["v0-m3"]
    (quotes,) = [section for section in question["sections"] if section["table"] == "quotes"]
    assert [line.split("place ")[1][0] for line in quotes["lines"]] == ["0", "1"]
    calls = [call for call in question["calls"] if call["stage"] == "quote"]
    assert calls and all(call["messages"] for call in calls)


TRACE = """    @classmethod
    def trace(cls, row):
        raise KeyError("loud")


@dataclass(frozen=True)
class CopyQuote"""


@pytest.mark.slow
def test_rows_whose_trace_raises_are_shown_by_their_columns(
    warehouse: Path, tmp_path: Path
) -> None:
    plugin = shutil.copytree(PLUGIN, tmp_path / "quote_plugin")
    text, head = (plugin / "quote.py").read_text(), "@dataclass(frozen=True)\nclass CopyQuote"
    assert head in text
    (plugin / "quote.py").write_text(text.replace(head, TRACE))
    own = [f"warehouse={warehouse}", f"plugins={plugin}"]
    told = succeeded(own_process("trace", "v0-m3", *own))
    (line,) = [line for line in told.splitlines() if "KeyError: 'loud' (" in line]
    assert "quote.py:" in line and "\n  place 0, page_index " in told
    succeeded(own_process("report", f"html={tmp_path / 'page.html'}", *own))
