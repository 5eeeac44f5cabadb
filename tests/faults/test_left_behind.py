"""What a run with secrets in its environment leaves behind, and where its processes listen."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.support.command import ROOT
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.sampled

SECRETS = {
    "NIGHT_KEY": "sk-night-5f3e9c1d7b8a2046",
    "AWS_ACCESS_KEY_ID": "AKIA5F3E9C1D7B8A2046",
    "AWS_SECRET_ACCESS_KEY": "aws-5f3e9c1d7b8a2046aws",
    "AWS_SESSION_TOKEN": "session-5f3e9c1d7b8a2046",
    "HF_TOKEN": "hf_5f3e9c1d7b8a2046abcdef",
    "HTTPS_PROXY": "http://me:proxy-5f3e9c1d7b8a2046@127.0.0.1:9",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """All that the run can write to by itself; a short path, as Ray's sockets are below it."""
    path = Path(tempfile.mkdtemp(prefix="gm", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


class Watched:
    """A run in its own process; while the server is asked, looks at the processes of the run."""

    def __init__(self, folder: Path) -> None:
        self.listening, self.commands = set[str](), set[str]()
        write(folder / "corpus", [document(1)], [question(1, of=1)])
        (folder / "home").mkdir()
        environment = {
            **os.environ, **SECRETS, "NO_PROXY": "127.0.0.1,localhost",
            "RAY_TMPDIR": str(folder), "TMPDIR": str(folder), "HOME": str(folder / "home"),
        }  # fmt: skip
        with LoopbackServer(key=SECRETS["NIGHT_KEY"], answer=self._answer) as server:
            words = [
                "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
                "methods=gist_only", f"warehouse={folder / 'warehouse'}", "engine=openai",
                f"engine.base_url={server.url}", "engine.model=m", "engine.api_key_env=NIGHT_KEY",
            ]  # fmt: skip
            self._run = subprocess.Popen(
                [sys.executable, "-m", "jobs", "run", *words], cwd=ROOT, env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            self.told, _ = self._run.communicate(timeout=300)
        self.code, self.num_asked = self._run.returncode, len(server.asked)

    def _answer(self, body: dict[str, Any]) -> Answer:
        driver = psutil.Process(self._run.pid)
        for process in (driver, *driver.children(recursive=True)):
            try:
                sockets = process.net_connections("inet")
                self.commands.add(" ".join(process.cmdline()))
            except psutil.Error:  # it has ended
                continue
            self.listening |= {s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN}
        return Answer(text="said in four words")


def left_with(secret: str, folder: Path) -> list[Path]:
    """The files that hold a text; of Parquet, whose pages are compressed, what is in its rows and
    footer."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len([path for path in files if path.suffix == ".log"]) > 3, "Ray's logs are among them"
    assert [path for path in files if path.suffix == ".parquet"]
    return [path for path in files if secret in _content(path)]


def _content(path: Path) -> str:
    if path.suffix != ".parquet":
        return path.read_bytes().decode("latin-1")
    file = pq.ParquetFile(path)
    return f"{file.read().to_pylist()} {file.schema_arrow.metadata} {file.metadata.metadata}"


def is_loopback(address: str) -> bool:
    ip = ip_address(address)
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


@pytest.mark.slow
def test_no_secret_is_left_and_nothing_listens_beyond_this_machine(folder: Path) -> None:
    run = Watched(folder)
    assert run.code == 0, run.told
    assert run.num_asked > 3
    assert run.listening and all(map(is_loopback, run.listening)), run.listening
    assert left_with("NIGHT_KEY", folder), "the variable's name is in the stored config"
    for name, value in SECRETS.items():
        secret = value.removeprefix("http://me:").partition("@")[0]
        assert left_with(secret, folder) == [], name
        assert secret not in run.told, name
        assert not [command for command in run.commands if secret in command], name
