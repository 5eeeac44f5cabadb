"""The source of a plugin's stage that has no version: its module, and those of its package that it
imports, however it does."""

import sys
from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_plugins
from pipeline.core.registry import source_of
from pipeline.work.stage import STAGES

STAGE = """
from typing import ClassVar
IMPORT
from stages.retrieve.ranked_pages import RankedPages

class Own(RankedPages):
    kind: ClassVar[str] = "KIND"
    VERSION

    def best(self, pages, question):
        return order(len(pages))
"""
ORDER = "def order(number: int) -> list[int]:\n    return [*range(number)]\n"


class Plugin:
    """A plugin's folder, that may be loaded again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "parts").mkdir(parents=True)
        (folder / "orders.py").write_text(ORDER)
        (folder / "parts" / "orders.py").write_text("from ..orders import order as order\n")
        (folder / "unused.py").write_text("ONE = 1\n")

    def write(self, imports: str, version: str = "") -> None:
        text = STAGE.replace("IMPORT", imports).replace("KIND", self.folder.name)
        (self.folder / "own.py").write_text(text.replace("VERSION", version))

    def source(self) -> str | None:
        for module in [*sys.modules]:
            if module.startswith(f"gistmill_plugins.{self.folder.name}"):
                del sys.modules[module]
        with pytest.MonkeyPatch.context() as context:
            context.setattr("pipeline.core.plugins._PLACES", {})
            load_plugins([str(self.folder)])
        return source_of(STAGES["look_up"].pop(self.folder.name))


@pytest.fixture
def plugin(tmp_path: Path, registries: None) -> Plugin:
    return Plugin(tmp_path / tmp_path.name)


@pytest.mark.parametrize(
    "imports",
    [
        "from .orders import order",
        "from .parts.orders import order",
        "from gistmill_plugins.NAME.orders import order",
        "from gistmill_plugins.NAME import orders\norder = orders.order",
        "import gistmill_plugins.NAME.parts.orders as orders\norder = orders.order",
    ],
)
def test_a_changed_module_that_it_imports(plugin: Plugin, imports: str) -> None:
    plugin.write(imports.replace("NAME", plugin.folder.name))
    before = plugin.source()
    assert before and plugin.source() == before
    (plugin.folder / "unused.py").write_text("ONE = 2\n")
    assert plugin.source() == before
    (plugin.folder / "orders.py").write_text(ORDER.replace("range(", "range(1, "))
    assert plugin.source() not in (None, before)


def test_one_with_a_version_has_none(plugin: Plugin) -> None:
    plugin.write("from .orders import order", "version: ClassVar[int] = 3")
    assert plugin.source() is None
    assert source_of(STAGES["look_up"]["bm25"]) is None


def test_one_in_no_file_needs_a_version() -> None:
    class Other:
        """As a class of a notebook, whose module has no file."""

        __module__ = "notebook"

    with pytest.raises(UsageError, match=r"^notebook: Other is in no file; give it a `version`$"):
        source_of(Other)


def test_a_module_of_its_own_that_is_importable_by_itself(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the folder that holds it: workers and the hash would not find it."""
    monkeypatch.syspath_prepend(plugin.folder)
    plugin.write("from orders import order")
    with pytest.raises(UsageError, match=r"imports orders, of the plugin itself; write `from \.m"):
        plugin.source()
    del sys.modules["orders"], STAGES["look_up"][plugin.folder.name]
