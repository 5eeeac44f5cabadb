"""Keys are named by `*_env` alone: redacted by value, never stored, and refused in words."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.graph.manifest import run_manifest
from jobs.graph.read_run import read_run
from pipeline.core.compose import compose
from pipeline.core.errors import DamagedError, LeftOutWarning, UsageError
from pipeline.core.redaction import redacted, remember_key
from pipeline.engines.openai_client import FailedError
from tests.support.command import refused
from tests.support.runs.warehouse import Warehouse, answer, chunk, step

SECRET = "0p3nSesame"
OPENAI = ("engine=openai", "engine.model=m", "engine.base_url=http://127.0.0.1:1/v1")
REFUSED = [
    "engine.args.user='a ${oc.env:OPENAI_API_KEY,none} b'",  # nothing but other keys is read
    "engine.args.user='${oc.${.a}:OPENAI_API_KEY}'",
    "engine.args.folder=${hydra:runtime.cwd}",
    "engine.args={a: [{b: http://me:0p3nSesame@proxy:3128}]}",
    "engine.args.user=0p3nSesame",
    "engine.args.api_key=another",
    "engine.base_url=http://h/0p3nSesame/v1",
    "cluster.address=http://me:0p3nSesame@head:8265",
    "warehouse=s3://key:0p3nSesame@bucket/w",
    "corpus.path=simplecache::ftp://me:0p3nSesame@host/corpus",
]


@pytest.mark.parametrize("word", REFUSED)
def test_a_secret_is_refused_in_one_line(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(UsageError) as caught:
        read_run(["experiment=demo", *OPENAI, word])
    line = str(caught.value)
    assert word.partition("=")[0] in line and SECRET not in line and "\n" not in line


def test_reading_verbs_refuse_passwords_too() -> None:
    told = refused("status", f"warehouse=s3://key:{SECRET}@bucket/w")
    assert told.startswith("warehouse") and SECRET not in told


def test_other_keys_are_interpolated() -> None:
    words = ("experiment=demo", "engine.seed=7", "corpus.seed=${engine.seed}")
    assert compose(words)["corpus"]["seed"] == 7


def test_what_is_for_rays_job_alone_is_not_stored() -> None:
    words = ("cluster=ray", "cluster.address=auto",
             f"cluster.runtime_env.env_vars.HTTPS_PROXY=http://me:{SECRET}@h:1")  # fmt: skip
    assert SECRET not in str(run_manifest(read_run(["experiment=demo", *words])))


def test_lines_are_printed_without_passwords() -> None:
    line = "from http://me:pw@proxy:3128/x, s3://k:v@b, http://tok@h, http://h:80/v1@2; a:b@c stays"
    assert redacted(line) == (
        "from http://me:***@proxy:3128/x, s3://k:***@b, http://***@h, http://h:80/v1@2; a:b@c stays"
    )


def test_rows_and_errors_hide_a_key(tmp_path: Path) -> None:
    key = remember_key(" sk-in-a-row-0123456789\r\n")
    assert key == "sk-in-a-row-0123456789"
    answers = step("answers", "full_text")
    row = replace(answer(), problem="unit_failed", detail=f"ValueError: bad header {key}")
    shard = Warehouse(tmp_path).commit(answers, chunk(answers, "d1", "q1"), [row])
    assert pq.read_table(str(shard))["detail"].to_pylist() == ["ValueError: bad header ***"]
    for error in (UsageError(f"a {key}", (key,)), DamagedError("f", key), FailedError(key)):
        assert key not in f"{error} {getattr(error, 'hints', '')}"


def test_white_space_around_a_key_is_left_out_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-white-0123456789\n")
    with pytest.warns(LeftOutWarning, match="^white space around the key in OPENAI_API_KEY$"):
        read_run(["experiment=demo", *OPENAI])
