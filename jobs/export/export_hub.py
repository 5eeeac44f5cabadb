"""Export the tables of a run as a folder for the Hugging Face Hub: Parquet files and a dataset
card."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from jobs.cite.cite import statement
from jobs.cite.show_cite import cite_parts
from jobs.config.options import ReadOptions
from jobs.export.target import export_folder, warn_incomplete
from jobs.output.cells import Heading, Part, Table, Verbatim
from jobs.output.markdown import markdown
from jobs.report.report import INPUTS
from pipeline.core.errors import UsageError
from pipeline.core.registry import nearest
from pipeline.core.rows import RECORDS
from pipeline.files.place import write
from pipeline.store.sql.connection import query
from pipeline.store.sql.sql_sandbox import write_rows

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"),
          (10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B"))  # fmt: skip
_LARGEST = "n>1B"
_LICENCES = {"mit", "apache-2.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc0-1.0"}


def export_hub(
    options: ReadOptions, with_texts: bool, is_forced: bool, warn: Callable[[str], None]
) -> Mapping[str, Any]:
    """Write the tables of a run that have rows, or those in `tables=`, each as one Parquet file,
    and README.md, which makes each a configuration of the data set; returns what was made. `warn`
    gets a line if the run is not complete.

    Without `with_texts` the columns that hold the documents' own text are left out. Raises
    UsageError for an unknown table, and as `export_folder` does.
    """
    with options.opened() as (folder, connection), export_folder(options.to, is_forced) as made:
        tables = []
        for name in _names(connection, options.chosen_tables()):
            columns = () if with_texts else RECORDS[name].source_text
            file, left_out = made / "data" / f"{name}.parquet", ", ".join(columns)
            selected = f'select * {f"exclude ({left_out})" if columns else ""} from "{name}"'
            num_rows = write_rows(connection, selected, file)
            tables.append({"table": name, "rows": num_rows, "left_out": left_out or None})
        warn_incomplete(folder.path.name, query(connection, INPUTS)[0], warn)
        facts = statement(options)
        card = _card(facts, tables, options.licence or _licence(facts["licences"]))
        write(made / "README.md", card.encode())
    return {"to": options.to, "tables": tables}


def _names(connection: Any, chosen: Sequence[str]) -> Sequence[str]:
    for name in chosen:
        if name not in RECORDS:
            near = nearest(name, sorted(RECORDS), 5)
            raise UsageError(f"tables={name}: no such table; nearest: {near}")
    return chosen or [
        name for name in sorted(RECORDS) if query(connection, f'select 1 from "{name}" limit 1')
    ]


def _licence(stated: Mapping[str, str] | None) -> str:
    """The Hub's id of the only licence that the run states of its data; else unknown."""
    ids = {text.lower().replace(" ", "-") for text in (stated or {}).values()}
    return next(iter(ids & _LICENCES)) if len(ids) == 1 and ids <= _LICENCES else "unknown"


def _card(facts: Mapping[str, Any], tables: Sequence[Mapping[str, Any]], licence: str) -> str:
    """The dataset card: the Hub's settings in YAML, then text."""
    most = max((table["rows"] for table in tables), default=0)
    settings = {
        "pretty_name": f"gistmill run {facts['run']} on {facts['corpus']['name']}",
        "license": licence,
        "task_categories": ["question-answering"],
        "tags": ["gistmill", "long-context"],
        "size_categories": [next((name for size, name in _SIZES if most < size), _LARGEST)],
        "configs": [
            {"config_name": table["table"], "data_files": f"data/{table['table']}.parquet"}
            for table in tables
        ],
    }
    front = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n{markdown(_parts(facts, tables))}\n"


def _parts(facts: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    yield Heading(f"gistmill run {facts['run']} on {facts['corpus']['name']}")
    yield (
        "Answers of methods that read long documents, and every step that led to them, as tables "
        "of Parquet. Rows of the same question have the same `question_id`, rows of the same "
        "document the same `document_id`."
    )
    columns = [f"`{table['table']}`: {table['left_out']}" for table in tables if table["left_out"]]
    if columns:
        yield (
            f"Columns with the documents' own text are left out: {'; '.join(columns)}. Gists, "
            "answers and other replies of models may quote it."
        )
    yield Table([{"table": t["table"], "rows": t["rows"], "a row is": _about(t)} for t in tables],
                left=("a row is",))  # fmt: skip
    yield Heading("How it was made", 2)
    for part in cite_parts(facts)[1:]:  # without its heading, the run's name
        yield f"```bibtex\n{part.text}\n```" if isinstance(part, Verbatim) else part


def _about(table: Mapping[str, Any]) -> str:
    """A description of the table's rows: the first paragraph of their class's documentation."""
    first, *_ = (RECORDS[table["table"]].__doc__ or "").split("\n\n")
    return " ".join(first.split())
