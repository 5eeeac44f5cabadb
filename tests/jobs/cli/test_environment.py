"""What the environment of a command may hold: proxies and certificates that cannot be used, and an
encoding of standard output that lacks what is printed."""

import json
import os
import subprocess
import sys
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
        ("https_proxy", "socks5h://me:proxy-5f3e9c1d@127.0.0.1:9"),
        ("HTTP_PROXY", DEAD),
        ("all_proxy", DEAD),
        ("HTTP_PROXY", "http://me:proxy-5f3e9c1d"),
        ("HTTP_PROXY", "ftp://127.0.0.1:9"),
        ("SSL_CERT_FILE", "/no/such/file.pem"),
        ("SSL_CERT_FILE", str(Path(__file__))),
    ],
)
def test_what_cannot_be_used_is_one_line_that_names_the_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with LoopbackServer() as server:
        line = start_error(settings(server.url))
    assert name in line and "proxy-5f3e9c1d" not in line


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


@pytest.mark.slow
def test_a_standard_output_that_is_not_utf8(tmp_path: Path) -> None:
    """Tables lose the characters, JSON has escapes, and an export is UTF-8 as in a file."""
    row = {**question(1, of=1), "question": "Où est mill1, à Łódź?", "references": ["Łódź"]}
    text = document(1)["text"].replace("gist1", "Łódź")
    write(tmp_path / "corpus", [{**document(1), "text": text}], [row])
    warehouse, latin = f"warehouse={tmp_path / 'w'}", {"PYTHONIOENCODING": "latin-1"}
    corpus = ("corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM, "rater=none")
    words = ("run", "run=night", *corpus, "methods=full_text", "cluster=inline", warehouse)
    done = command(*words, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    c_locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    for encoding in ({"PYTHONIOENCODING": "ascii"}, c_locale):
        done = command("trace", "q1", warehouse, **encoding)
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"O? est mill1, ? ??d??" in done.stdout
    done = command("sql", "select question as q from questions", warehouse, "--json", **latin)
    assert json.loads(done.stdout.decode("ascii")) == [{"q": "Où est mill1, à Łódź?"}]
    done = command("export", "predictions", "method=full_text", "to=-", warehouse, **latin)
    assert done.returncode == 0, done.stderr
    assert "Łódź" in done.stdout.decode()
