"""The words of reading verbs, such as `run=NAME` and `where=SQL`, and the prices and rates that
several verbs take."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from upath import UPath

from pipeline.core.errors import UsageError, refuse_secret
from pipeline.files.storage import as_path

if TYPE_CHECKING:
    from pipeline.core.engine import Price
    from pipeline.store.runs.run_folder import RunFolder

WAREHOUSE = as_path("warehouse")
# The keys of verbs that continue a stored run; `score` takes all keys of `run`.
KEYS: Mapping[str, tuple[str, ...]] = {
    "rate add": ("warehouse", "run", "rater", "cluster"),
    "rate audit": ("warehouse", "run", "n", "seed", "cluster"),
    "retry": ("warehouse", "run", "problem", "cluster"),
}


NOT_OF_ASK = ("corpus", "corpus.path", "corpus.format", "corpus.split", "experiment", "run")
"""The keys of runs that `ask` refuses."""


_Number = Annotated[int, Field(ge=0, le=1_000_000)]


def word(form: str, about: str, default: Any = None) -> Any:
    """A word's field; for `--help` the form of its value, and what it is for."""
    return field(default=default, metadata={"form": form, "about": about})


@dataclass(frozen=True)
class ReadOptions:
    """The words of verbs that read a run, and the switches `split_shared` and `as_json`. `by` and
    `where` are SQL over the questions."""

    warehouse: Annotated[UPath, BeforeValidator(as_path)] = word(
        "DIR", "By default ./warehouse.", WAREHOUSE
    )
    run: str | None = word("NAME", "By default the last started, audits apart.")
    by: str | None = word("SQL", "Of questions: rows for each of its values, too.")
    where: str | None = word("SQL", "Only the questions for which it is true.")
    columns: str | None = word("NAME,...", "These measures, counts or headings, in order.")
    names: str | None = word("FILE", "Your names.yaml; or paper, canonical.")
    method: str | None = word("NAME", "A method, or how the names of some begin.")
    metric: str | None = word("NAME,...", "By default those of answers.")
    rater: str | None = word("NAME", "Whose verdicts count; how it begins will do.")
    plugins: str | None = word("DIR,...", "Folders with stages and prompts of your own.")
    memory: str | None = word("NAME", "Of several that the run has of the document.")
    page: str | None = word("3|0..4", "Pages by their indexes; by default all.")
    port: Annotated[int, Field(ge=0, lt=2**16)] = word(
        "PORT", "By default 7645; 0: any that is free.", 7645
    )
    older_than: str | None = word("24h", "Files that were replaced before; by default 24h.")
    format: str | None = word("NAME", "By default the first of those named above.")
    to: str = word("FILE", "On any filesystem; by default -, standard output.", "-")
    caption: str | None = word("TEXT", "By default what the numbers are over, and marks.")
    label: str | None = word("NAME", "Of LaTeX's table; by default tab:RUN.")
    n: Annotated[_Number, Field(ge=1)] = word("NUMBER", "How many answers; by default 200.", 200)
    seed: _Number = word("NUMBER", "Of what is drawn; by default 0.", 0)
    person: str = word("NAME", "Whose labels they are.", "")
    rows: Annotated[int, Field(ge=1, le=10**12)] = word(
        "NUMBER", "So many are printed; by default 10,000.", 10_000
    )
    seconds: Annotated[float, Field(ge=0.1, le=10**9)] = word(
        "NUMBER", "Then it is stopped; by default 600.", 600.0
    )
    price: str | None = word("PROMPT,REPLY[,CACHED]", "Of a million tokens: adds money.")
    every: Annotated[float | None, Field(ge=0.1, le=86_400)] = word(
        "SECONDS", "Print it again, so often, while the run is at work."
    )
    html: str | None = word("FILE", "Write a page of it and every question.")
    baseline: str | None = word("METHOD", "Each row's difference from it, and p, too.")
    only: str | None = word("PART", "All of one part: scores, reading or cost.")
    split_shared: bool = False
    as_json: bool = False

    @contextmanager
    def opened(self) -> Iterator[tuple["RunFolder", Any]]:
        """The folder of the run, and a connection that shows its rows. Raises UsageError."""
        from pipeline.store import connect  # imported here, as `gistmill --help` needs none of it
        from pipeline.store.runs.run_folder import RunFolder

        with connect(self.warehouse, self.run) as connection:
            yield RunFolder(self.warehouse, connection.run), connection


REPORT = ("by", "where", "rater", "columns", "names", "plugins", "price", "baseline", "only")
"""The keys of a printed report."""
WORDS: Mapping[str, tuple[str, str]] = {
    key.name: (key.metadata["form"], key.metadata["about"])
    for key in fields(ReadOptions)
    if key.metadata
}
"""The keys, and for `--help` the form of each one's value, and what it is for."""
_SQL = ("by", "where")  # not stored, and may hold a text that looks like an address


def read_options(words: Sequence[str], keys: Sequence[str]) -> ReadOptions:
    """Parse the words `KEY=VALUE` of a verb that has these keys. Raises UsageError for other words,
    empty values and secrets."""
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in keys:
            order = "" if equals else ", after what the verb is about"
            raise UsageError(f"{word!r}: unknown word; there are {', '.join(keys)}=...{order}")
        if not value:
            raise UsageError(f"{key}= is empty; give it a value or leave it out")
        if key not in _SQL:
            refuse_secret(word)
        values[key] = value
    try:
        return TypeAdapter(ReadOptions).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise UsageError(f"{key}={values[key]}: {first['msg']}") from None


def price_of(written: str) -> "Price":
    """Parse PROMPT,REPLY[,CACHED]. Raises UsageError for another form."""
    from pipeline.core.engine import Price

    parts = written.split(",")
    names = ("input", "output", "cached_input")[: len(parts)]
    try:
        return Price.model_validate(dict(zip(names, map(float, parts), strict=True)))
    except ValueError:  # of a number, of how many there are, or pydantic's
        form = "PROMPT,REPLY[,CACHED] in money a million tokens"
        raise UsageError(f"price {written}: write {form}") from None
