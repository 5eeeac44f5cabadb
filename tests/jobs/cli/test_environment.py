"""What the environment of a command may hold: proxies and certificates that cannot be used, and an
encoding of standard output that lacks what is printed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.engines.test_openai_engine import settings, start_error
from tests.support.clusters.ray_head import free_ports
from tests.support.command import ROOT
from tests.support.engines.loopback_server import LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

DEAD = "http://me:proxy-5f3e9c1d@127.0.0.1:9"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:9"),
        ("https_proxy", "socks5h://me:proxy-5f3e9c1d@127.0.0.1:9"),
        ("HTTP_PROXY", DEAD),
        ("http_proxy", DEAD),
        ("all_proxy", DEAD),
        ("HTTP_PROXY", "http://me:proxy-5f3e9c1d"),
        ("HTTP_PROXY", "ftp://127.0.0.1:9"),
        ("SSL_CERT_FILE", "/no/such/file.pem"),
        ("SSL_CERT_FILE", "/tmp"),
        ("SSL_CERT_FILE", str(Path(__file__))),
    ],
)
def test_what_cannot_be_used_is_one_line_that_names_the_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with LoopbackServer() as server:
        told = start_error(settings(server.url))
    assert name in told and "proxy-5f3e9c1d" not in told


def test_a_proxy_that_is_not_before_the_server_is_no_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/v1"
    monkeypatch.setenv("HTTPS_PROXY", DEAD)
    assert "PROXY" not in start_error(settings(url))
    monkeypatch.setenv("HTTP_PROXY", DEAD)
    assert "HTTP_PROXY" in start_error(settings(url))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    assert "PROXY" not in start_error(settings(url))


def command(*words: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "gistmill", *words],
        cwd=ROOT, capture_output=True, timeout=300, env={**os.environ, **environment},
    )  # fmt: skip


def run_words(folder: Path) -> list[str]:
    asked = {**question(1, of=1), "question": "Où est mill1, à Łódź?", "references": ["Łódź"]}
    told = {**document(1), "text": document(1)["text"].replace("gist1", "Łódź")}
    write(folder / "corpus", [told], [asked])
    return [
        "run", "run=night", "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM,
        "rater=none", "methods=full_text", f"warehouse={folder / 'w'}", "cluster=inline",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("night")
    done = command(*run_words(folder), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    yield f"warehouse={folder / 'w'}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoding",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
def test_tables_on_a_standard_output_that_is_not_utf8(
    warehouse: str, encoding: dict[str, str]
) -> None:
    done = command("trace", "q1", warehouse, **encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"O? est mill1, ? ??d??" in done.stdout


@pytest.mark.slow
def test_json_and_exports_are_exact_there(warehouse: str) -> None:
    """JSON by its escapes, an export in UTF-8 as to a file."""
    latin = {"PYTHONIOENCODING": "latin-1"}
    done = command("sql", "select question as q from questions", warehouse, "--json", **latin)
    assert json.loads(done.stdout.decode("ascii")) == [{"q": "Où est mill1, à Łódź?"}]
    done = command("export", "predictions", "method=full_text", "to=-", warehouse, **latin)
    assert done.returncode == 0, done.stderr
    assert "Łódź" in done.stdout.decode()
