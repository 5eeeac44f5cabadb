"""The parts of a printed statement of what a paper must say of a run."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jobs.output.cells import Heading, Part, Verbatim
from jobs.report.render import REPEATED

_NO_PAPERS = "not known: the run was last started by an earlier version of gistmill; start it again"
_WORDING = {"ours": "in our own words, not the papers'", "authors": "in the authors' words"}
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    trim_blocks=True,
    autoescape=False,
)


def cite_parts(found: Mapping[str, Any]) -> list[Part]:
    """A paragraph per subject, then BibTeX."""
    wording = found["prompts"]["wording"]
    text = _TEMPLATES.get_template("cite.jinja").render(
        found, repeated=REPEATED, wording=_WORDING.get(wording, f"in {wording} words")
    )
    paragraphs = [part.strip("\n") for part in text.split("\n\n") if part.strip()]
    return [Heading(found["run"]), *paragraphs, "BibTeX:", *map(Verbatim, _papers(found))]


def _papers(found: Mapping[str, Any]) -> Iterator[str]:
    yield found["gistmill"]
    if found["papers"] is None:
        yield f"% papers of methods and datasets: {_NO_PAPERS}"
    yield from (found["papers"] or {}).values()
