"""Keys are named by `*_env` alone: redacted by value, never stored, and refused in words."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.cli.app import warn
from jobs.graph.resolved_run import read_run, run_manifest
from jobs.submit.package import print_to_stderr
from pipeline.core import errors
from pipeline.core.errors import Raised, UsageError, redacted
from pipeline.engines.openai_client import FailedError, server_words
from tests.support.command import gistmill, refused
from tests.support.engines.loopback_server import Answer, LoopbackServer
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


def test_other_keys_are_interpolated_and_what_is_for_rays_job_alone_is_not_stored() -> None:
    words = ("experiment=demo", "engine.seed=7", "corpus.seed=${engine.seed}", "cluster=ray",
             "cluster.address=auto",
             f"cluster.runtime_env.env_vars.HTTPS_PROXY=http://me:{SECRET}@h:1")  # fmt: skip
    run = read_run([*words])
    assert run.config.corpus.model_dump()["seed"] == 7
    assert SECRET not in str(run_manifest(run))


def test_lines_are_printed_without_passwords() -> None:
    line = "from http://me:pw@proxy:3128/x, s3://k:v@b, http://tok@h, http://h:80/v1@2; a:b@c stays"
    hidden = line.replace("me:pw@", "me:***@").replace("k:v@", "k:***@").replace("tok@", "***@")
    assert redacted(line) == hidden


def stored(text: str, folder: Path) -> str:
    """The detail of a row, as a shard has it."""
    answers = step("answers", "full_text")
    row = replace(answer(), problem="unit_failed", detail=text)
    shard = Warehouse(folder).commit(answers, chunk(answers, "d1", "q1"), [row])
    return str(pq.read_table(str(shard))["detail"].to_pylist())


OUT: dict[str, Callable[[str, Path], object]] = {
    "mistake": lambda text, folder: UsageError(text),
    "request": lambda text, folder: FailedError(text),
    "server": lambda text, folder: server_words({"error": {"message": text}}),
    "detail of a row": lambda text, folder: stored(Raised(ValueError(text)).trace(), folder),
    "warning": lambda text, folder: warn(text),
    "submit": lambda text, folder: print_to_stderr(text),
}


@pytest.mark.parametrize("place", OUT)
def test_a_key_is_hidden_in_all_that_goes_out(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = errors.remember_key(" sk-goes-out-0123456789\r\n")
    assert key == "sk-goes-out-0123456789"
    written = f"{OUT[place](f'bad header {key}', tmp_path)} {capsys.readouterr()}"
    assert "bad header ***" in written and key not in written


def test_what_a_server_says_of_the_key_is_stored_and_printed_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-echoed-0123456789"
    monkeypatch.setenv("NIGHT_KEY", key)
    echo = Answer(status=400, body=json.dumps({"error": {"message": f"not with {key}"}}))
    with LoopbackServer(key=key, answer=lambda body: echo) as server:
        done = gistmill(
            "run", "corpus=demo", "limit=1", "rater=none", "methods=closed_book",
            f"warehouse={tmp_path}", "engine=openai", "cluster=inline", "engine.retries=0",
            f"engine.base_url={server.url}", "engine.model=m", "engine.api_key_env=NIGHT_KEY",
        )  # fmt: skip
    assert key not in done.stdout + done.stderr
    contents = str([
        pq.read_table(str(file)).to_pylist() if file.suffix == ".parquet" else file.read_text()
        for file in tmp_path.rglob("*") if file.is_file()
    ])  # fmt: skip
    assert "not with ***" in contents and "NIGHT_KEY" in contents
    assert key not in contents


def test_a_worker_hides_the_keys_of_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHT_KEY", f"{SECRET}\n")
    run = read_run(["experiment=demo", *OPENAI, "engine.api_key_env=NIGHT_KEY"])
    pickled = pickle.dumps(run.config.engine)
    monkeypatch.setattr(errors, "_keys", set())
    pickle.loads(pickled)
    assert redacted(SECRET) == "***"
