"""What a run with secrets in its environment leaves behind, and where its processes listen."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.support.command import ROOT
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.texts.small_corpus import UNIFORM, document, question, write

SECRETS = {
    "NIGHT_KEY": "sk-night-5f3e9c1d7b8a2046",
    "AWS_ACCESS_KEY_ID": "AKIA5F3E9C1D7B8A2046",
    "AWS_SECRET_ACCESS_KEY": "aws-5f3e9c1d7b8a2046aws",
    "AWS_SESSION_TOKEN": "session-5f3e9c1d7b8a2046",
    "HF_TOKEN": "hf_5f3e9c1d7b8a2046abcdef",
    "HTTPS_PROXY": "http://me:proxy-5f3e9c1d7b8a2046@127.0.0.1:9",
}


def watched(folder: Path) -> tuple[str, set[str], set[str]]:
    """What a run in its own process says; the commands of its processes and the addresses that they
    listen at, whenever its server is asked."""
    commands, listening = set[str](), set[str]()

    def answer(body: dict[str, Any]) -> Answer:
        driver = psutil.Process(run.pid)
        for process in (driver, *driver.children(recursive=True)):
            with suppress(psutil.Error):  # it has ended
                sockets = process.net_connections("inet")
                commands.add(" ".join(process.cmdline()))
                listening.update(s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN)
        return Answer(text="said in four words")

    write(folder / "corpus", [document(1)], [question(1, of=1)])
    (folder / "home").mkdir()
    environment = {
        **os.environ, **SECRETS, "NO_PROXY": "127.0.0.1,localhost",
        "RAY_TMPDIR": str(folder), "TMPDIR": str(folder), "HOME": str(folder / "home"),
    }  # fmt: skip
    with LoopbackServer(key=SECRETS["NIGHT_KEY"], answer=answer) as server:
        words = [
            "corpus=tables", f"corpus.path={folder / 'corpus'}", *UNIFORM, "rater=none",
            "methods=gist_only", f"warehouse={folder / 'warehouse'}", "engine=openai",
            f"engine.base_url={server.url}", "engine.model=m", "engine.api_key_env=NIGHT_KEY",
        ]  # fmt: skip
        run = subprocess.Popen(
            [sys.executable, "-m", "gistmill", "run", *words], cwd=ROOT, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        told, _ = run.communicate(timeout=300)
    assert run.returncode == 0, told
    assert len(server.asked) > 3
    return told, commands, listening


def content(path: Path) -> str:
    """Of Parquet, whose pages are compressed, what is in its rows and footer."""
    if path.suffix != ".parquet":
        return path.read_bytes().decode("latin-1")
    file = pq.ParquetFile(path)
    return f"{file.read().to_pylist()} {file.schema_arrow.metadata} {file.metadata.metadata}"


def is_loopback(address: str) -> bool:
    ip = ip_address(address)
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


@pytest.mark.slow
@pytest.mark.sampled
def test_no_secret_is_left_and_nothing_listens_beyond_this_machine() -> None:
    """In a short folder, as Ray's sockets are below it; it is all that the run may write to."""
    with tempfile.TemporaryDirectory(prefix="gm", dir="/tmp", ignore_cleanup_errors=True) as name:
        told, commands, listening = watched(Path(name))
        contents = {path: content(path) for path in Path(name).rglob("*") if path.is_file()}
    assert listening and all(map(is_loopback, listening)), listening
    assert len([path for path in contents if path.suffix == ".log"]) > 3, "Ray's are among them"
    assert [path for path in contents if path.suffix == ".parquet"]
    assert any("NIGHT_KEY" in text for text in contents.values()), "it is in the stored config"
    for name, value in SECRETS.items():
        secret = value.removeprefix("http://me:").partition("@")[0]
        assert [path for path, text in contents.items() if secret in text] == [], name
        assert secret not in told, name
        assert not [command for command in commands if secret in command], name
