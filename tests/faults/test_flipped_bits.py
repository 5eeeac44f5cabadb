"""Single flipped bits in the files of a warehouse: noticed before a row of the file is shown."""

import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from jobs.warehouse.verify import verify
from pipeline.core.errors import LeftOutWarning
from pipeline.files.place import as_path
from pipeline.store.runs.people import add_labels
from pipeline.store.upkeep.compaction import compact
from tests.support.command import gistmill, succeed
from tests.support.runs.finished_run import FinishedRun

FLIPS = 10_000
LABEL = {"method": "readagent_p", "repeat": 0, "document_id": "d1", "question_id": "q1",
         "answer_sha": "ab", "label": "yes"}  # fmt: skip
KEYS = (b"gistmill.sha256\x18\x40", b',"sha256":"', b'"}', b"# sha256: ")
READING = (["report", "--json"], ["status", "--json"], ["trace", "q1", "--json"],
           ["sql", "from all_answers order by all", "--json"])  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    made = FinishedRun(tmp_path_factory.mktemp("made"))
    add_labels(as_path(made.warehouse) / "runs" / "night", "ann", [LABEL])
    return made


@pytest.fixture(params=["loose", "compacted"])
def warehouse(made: FinishedRun, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = made.copied(tmp_path)
    if request.param == "compacted":
        compact(folder, least=2)
        succeed("gc", "older_than=0", f"warehouse={folder}")
    return folder


def files(warehouse: Path) -> list[Path]:
    found = [f for f in warehouse.rglob("*") if f.suffix in (".parquet", ".json", ".yaml")]
    return sorted(f for f in found if f.name != "checked.json" and "alive" not in f.parts)


def flipped(content: bytes, draw: random.Random) -> tuple[bytes, int]:
    """The content with one bit of it the other way round, and the place of the byte."""
    place = draw.randrange(len(content))
    bit = 1 << draw.randrange(8)
    return content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :], place


def is_in_key(content: bytes, place: int) -> bool:
    """True of the name of a checksum: without it a file looks like one of an earlier version."""
    starts = [(content.rfind(key), len(key)) for key in KEYS]
    return any(0 <= start <= place < start + length for start, length in starts)


@pytest.mark.slow
@pytest.mark.sampled
def test_ten_thousand_flips_are_noticed(warehouse: Path) -> None:
    draw, num_flips, unseen = random.Random(27), 0, []
    before = {file: file.read_bytes() for file in files(warehouse)}
    while num_flips < FLIPS / 2:
        changed = {file: flipped(content, draw) for file, content in before.items()
                   if file.name not in ("gistmill.json", "units.parquet")}  # fmt: skip
        for file, (content, _) in changed.items():
            file.write_bytes(content)
        named = {Path(row["file"]) for row in verify(as_path(warehouse), quick=False)["damaged"]}
        unseen += [(file.name, before[file][max(0, place - 20) : place + 20])
                   for file, (_, place) in changed.items()
                   if file not in named and not is_in_key(before[file], place)]  # fmt: skip
        num_flips += len(changed)
    assert unseen == []


def everything(warehouse: Path) -> Iterator["CompletedProcess[str]"]:
    for verb in READING:
        yield gistmill(*verb, f"warehouse={warehouse}")


@pytest.mark.slow
@pytest.mark.sampled
def test_reading_verbs_go_on_without_the_file_and_say_so(warehouse: Path) -> None:
    """Each flips one bit; what is printed is as before, or a line names the file."""
    draw = random.Random(4)
    before = {file: file.read_bytes() for file in files(warehouse)}
    whole = [done.stdout for done in everything(warehouse)]
    num_named = 0
    for _ in range(25):
        file = draw.choice([*before])
        content, _ = flipped(before[file], draw)
        file.write_bytes(content)
        for done, shown in zip(everything(warehouse), whole, strict=True):
            assert "Traceback" not in done.stderr, file
            is_named = str(file) in done.stderr
            num_named += is_named
            assert is_named or (done.stdout == shown and done.returncode == 0), (file, done.stderr)
        file.write_bytes(before[file])
    assert num_named > 40  # of 100


@pytest.mark.slow
def test_a_run_says_complete_only_of_files_that_are_as_written(
    made: FinishedRun, warehouse: Path
) -> None:
    draw = random.Random(5)
    before = {file: file.read_bytes() for file in files(warehouse)}
    words = [*made.words(warehouse), "cluster=inline"]
    succeed(*words)
    for file in draw.sample([f for f in before if "people" not in f.parts], 12):
        before = {file: file.read_bytes()}
        content, place = flipped(before[file], draw)
        file.write_bytes(content)
        done = gistmill(*words)
        assert "Traceback" not in done.stderr
        if not is_in_key(before[file], place):
            assert done.returncode in (1, 2) and str(file) in done.stderr, (file, done.stderr)
            assert done.stderr.startswith("gistmill: ") and len(done.stderr.splitlines()) == 1
        file.write_bytes(before[file])


def test_verify_names_each_damaged_file(warehouse: Path) -> None:
    assert "checked" in succeed("verify", f"warehouse={warehouse}")
    parquet = [file for file in files(warehouse) if file.suffix == ".parquet"]
    file = max(parquet, key=lambda file: file.stat().st_size)
    content = file.read_bytes()
    file.write_bytes(content[:40] + bytes([content[40] ^ 4]) + content[41:])
    for words in ([], ["--quick"]):
        done = gistmill("verify", f"warehouse={warehouse}", "--json", *words)
        found: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == 1
        assert [row["file"] for row in found["damaged"]] == [str(file)]
        assert "does not match its checksum" in found["damaged"][0]["why"]
        assert found["files"] == len(files(warehouse))
        assert done.stderr == "gistmill: 1 file damaged; see above\n"


@pytest.mark.slow
def test_a_file_is_read_whole_again_only_once_it_has_changed(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed("status", f"warehouse={warehouse}")
    record = json.loads((warehouse / "checked.json").read_text())
    shown = [file for file in files(warehouse) if file.parent.parent.parent.name == "tables"]
    assert {*record} >= {str(file.relative_to(warehouse)) for file in shown}
    for name in {*record} - {"sha256"}:
        facts = (warehouse / name).stat()
        assert [facts.st_mtime, facts.st_size] == record[name]


@pytest.mark.slow
def test_files_of_earlier_versions_have_no_checksum_and_are_read(warehouse: Path) -> None:
    import pyarrow.parquet as pq

    file = next(file for file in files(warehouse) if file.parent.parent.name == "runs")
    units = file.parent / "units.parquet"
    pq.write_table(pq.read_table(units).replace_schema_metadata(None), units)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftOutWarning)
        found = verify(as_path(warehouse), quick=False)
    assert (found["without_checksum"], found["damaged"]) == (1, [])
    assert "1 of them without a checksum" in succeed("verify", f"warehouse={warehouse}")
