"""Print the facts that a paper must state of a run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobs.output.cells import Heading, Part, Verbatim, counted
from jobs.report.render import REPEATED

_NO_PAPERS = "not known: the run was last started by an earlier version of gistmill; start it again"
_WORDING = {"ours": "in our own words, not the papers'", "authors": "in the authors' words"}


def cite_parts(found: Mapping[str, Any]) -> list[Part]:
    """What `gistmill cite` prints: a paragraph per subject, then BibTeX."""
    paragraphs = [
        _incomplete(found["inputs"]),
        [_corpus(found["corpus"])],
        ["Methods:", *(_method(method) for method in found["methods"])],
        [*_repeats(found)],
        ["Models that read:", *_engines(found["reading"]), f"Replies are {found['replies']}."],
        [_prompts(found["prompts"])],
        ["Raters:", *_raters(found), *_engines(found["rating"])],
        ["Measures:", *(_metric(metric) for metric in found["metrics"])],
        [found["means"]],
        _problems(found),
        ["Software:", *_software(found)],
        ["BibTeX:"],
    ]
    texts = ["\n".join(lines) for lines in paragraphs if lines]
    return [Heading(found["run"]), *texts, *map(Verbatim, _papers(found))]


def _incomplete(inputs: Mapping[str, int]) -> list[str]:
    left = inputs["not_done"]
    return [f"INCOMPLETE: {left} of {inputs['planned']} inputs are not done."] if left else []


def _corpus(corpus: Mapping[str, Any]) -> str:
    return (
        f"Corpus: {corpus['name']} (name and hash of all documents and questions), "
        f"{corpus['documents']:,} documents of {corpus['words']:,} words, "
        f"{corpus['questions']:,} questions."
    )


def _method(method: Mapping[str, Any]) -> str:
    given = f", answers of another system from {method['file']}" if method["file"] else ""
    return f"- {method['method']}: n = {method['n']}{given}"


def _repeats(found: Mapping[str, Any]) -> Iterator[str]:
    """A sentence on the number of repeats and the variation of means over them."""
    if found["repeats"] == 1:
        return
    yield (
        f"Repeats: {found['repeats']}, {REPEATED[found['repeat_from']]}; n counts the answers of "
        "all. Standard deviation of the repeats' means (n - 1):"
    )
    headings = {metric["name"]: metric["heading"] for metric in found["metrics"]}
    for method in found["methods"]:
        shown = [f"{headings[name]} {sd:.2f}" for name, sd in method["sd"].items()
                 if name in headings]  # fmt: skip
        yield f"- {method['method']}: {', '.join(shown) or '-'}"


def _engines(engines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in engines:
        settings = ", ".join(f"{key} {value}" for key, value in one["engine"].items())
        prompts = ", ".join(
            f"{name} {own['template']} (at most {own['max_reply_tokens']} tokens)"
            for name, own in one["prompts"].items()
            if "template" in own
        )
        yield f"- {one['stage']}: {settings}; prompts: {prompts or 'none'}"
    if not engines:
        yield "- none"


def _prompts(prompts: Mapping[str, Any]) -> str:
    wording = _WORDING.get(prompts["wording"], f"in {prompts['wording']} words")
    return f"Prompts: family {prompts['family']} (name and hash), {wording}."


def _raters(found: Mapping[str, Any]) -> Iterator[str]:
    for rater in found["raters"]:
        kind = "" if rater["is_model"] else " (no model: its verdicts fill no column)"
        yield (
            f"- {rater['rater']}{kind}, {rater['rubric']}: n = {rater['n']}, "
            f"{rater['unscored']} of them unscored"
        )
    for person in found["people"]:
        yield f"- {person['rater']}: {counted(person['labels'], 'label')}"


def _metric(metric: Mapping[str, Any]) -> str:
    about = f": {metric['about']}" if metric["about"] else ""
    name = "" if metric["name"] == metric["heading"] else f" ({metric['name']})"
    return f"- {metric['heading']}{name}{about}"


def _problems(found: Mapping[str, Any]) -> list[str]:
    lines = ["Problems:"]
    for method in found["methods"]:
        missing = (method["n"] or 0) - (method["answered"] or 0)
        unscored = f", {method['unscored']} unscored" if method["unscored"] else ""
        share = f"{100 * missing / method['n']:.1f}%" if method["n"] else "-"
        lines.append(f"- {method['method']}: {missing} answers ({share}) have a problem{unscored}")
    for memory in found["fallback"]:
        if memory["asked"]:
            share = f"{100 * memory['fell_back'] / memory['asked']:.1f}%"
            lines.append(f"- memory {memory['memory']}: {share} of the page ends fell back")
    return lines


def _software(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"- commit {', '.join(found['commits'])}"
    yield f"- {', '.join(f'{name} {version}' for name, version in found['versions'].items())}"
    for launch in found["launches"]:
        hardware = launch["hardware"] or {}
        machine = ", ".join(f"{key} {value}" for key, value in hardware.items())
        yield f"- started {launch['started_at']}, Python {launch['python']}, {machine}"


def _papers(found: Mapping[str, Any]) -> Iterator[str]:
    yield found["gistmill"]
    if found["papers"] is None:
        yield f"% papers of methods and datasets: {_NO_PAPERS}"
    yield from (found["papers"] or {}).values()
