"""Notebooks of this repository, run in a kernel of their own, and what their cells show."""

import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from tests.support.command import ROOT

FILES = {file.stem: file for file in sorted((ROOT / "notebooks").glob("*.ipynb"))}
Outputs = dict[str, list[Any]]
"""Of each code cell, by its id."""


def notebook(name: str) -> Any:
    return nbformat.read(FILES[name], as_version=4)  # type: ignore[no-untyped-call]  # nbformat


def execute(notebook: Any, cwd: Path, **environment: str) -> Outputs:
    """Run it in a kernel of its own, with this checkout's packages. Raises CellExecutionError."""
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(cwd)}},
    )
    client.execute(env={**_own(), "PYTHONPATH": str(ROOT), **environment})
    return {cell.id: cell.outputs for cell in code_cells(notebook)}


def _own() -> dict[str, str]:
    """The environment without what chooses a run."""
    return {name: value for name, value in os.environ.items() if "GISTMILL_" not in name}


class Kernel:
    """A kernel for one notebook after the other: to start one and import takes longer than all that
    they do."""

    def __init__(self) -> None:
        self._manager = AsyncKernelManager(kernel_name="python3")

    def execute(self, notebook: Any, **environment: str) -> Outputs:
        """As `execute`, of the warehouse and run that `environment` names."""
        begin = f"%reset -f\nimport os\nos.environ.update({environment})"
        first = new_code_cell(begin, id="environment")  # type: ignore[no-untyped-call]  # nbformat
        notebook.cells.insert(0, first)
        client = NotebookClient(notebook, km=self._manager, timeout=120)
        client.execute(env={**_own(), "PYTHONPATH": str(ROOT)})
        return {cell.id: cell.outputs for cell in code_cells(notebook)[1:]}

    def end(self) -> None:
        run_sync(self._manager.shutdown_kernel)(now=True)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown_as(kind: str, outputs: list[Any]) -> list[str]:
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


def table(outputs: list[Any]) -> list[dict[str, str]]:
    """The rows of the one table that a cell shows."""
    (html,) = shown_as("text/html", outputs)
    markup = html[html.index("<table") : html.index("</table>")] + "</table>"
    lines = ElementTree.fromstring(markup).iter("tr")
    head, *rows = [["".join(cell.itertext()) for cell in line] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]
