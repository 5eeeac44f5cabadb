"""An import of a plugin that is slow, prints or connects to a host is one line with its time."""

import json
import re
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.core.errors import PluginWarning
from pipeline.core.plugins import load_plugins
from tests.support.command import own_process

CONNECT = "import socket\nsocket.create_connection(('127.0.0.1', {port})).close()\n"
LINE = r"plugins={folder}: its import takes (\d+\.\d) s{did}; leave that to `run` or `start`"
Plugin = Callable[[str], Path]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """A plugin of one module with this text; what was loaded before is not."""
    monkeypatch.setattr("pipeline.core.plugins._PLACES", {})

    def write(text: str) -> Path:
        folder = tmp_path / f"busy_{tmp_path.name}"  # imported once
        folder.mkdir()
        (folder / "busy.py").write_text(text)
        return folder

    return write


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server that listens until the test ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def seconds(folder: Path, did: str) -> float:
    """What the warning says that the import took; it must say that it `did` so, and no more."""
    with pytest.warns(PluginWarning) as caught:
        load_plugins([str(folder)])
    (line,) = [str(one.message) for one in caught if one.category is PluginWarning]
    found = re.fullmatch(LINE.format(folder=re.escape(str(folder)), did=re.escape(did)), line)
    assert found, line
    return float(found[1])


@pytest.mark.slow
def test_one_that_takes_seconds(plugin: Plugin) -> None:
    folder, began = plugin("import time\ntime.sleep(2.2)\n"), time.monotonic()
    assert 2.2 <= seconds(folder, "") <= time.monotonic() - began + 0.1


def test_one_that_prints(plugin: Plugin, capsys: pytest.CaptureFixture[str]) -> None:
    folder = plugin("print('Loading the\\nmodel ...')\n")
    assert seconds(folder, " and prints 'Loading the model ...'") < 2
    assert capsys.readouterr().out == ""


def test_one_that_opens_the_network(plugin: Plugin, port: int) -> None:
    seconds(plugin(CONNECT.format(port=port)), " and connects to 127.0.0.1")


def test_one_that_does_neither(plugin: Plugin, port: int) -> None:
    """A connection after the import is the stage's own matter, and local sockets are no network."""
    later = "def run():\n    " + CONNECT.format(port=port).replace("\n", "\n    ")
    local = "import socket\none, other = socket.socketpair()\none.close()\nother.close()\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error", PluginWarning)
        load_plugins([str(plugin(local + later))])
        socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.parametrize("verb", ["ls", "run", "schema"])
def test_a_command_says_so_once(plugin: Plugin, verb: str, tmp_path: Path) -> None:
    folder = plugin("print('{')\n")
    words = ["experiment=demo", "methods=full_text", "limit=1", "cluster=inline"]
    own = [*words, f"warehouse={tmp_path / 'w'}"] if verb == "run" else []
    done = own_process(verb, f"plugins={folder}", "--json", *own)
    assert done.returncode == 0 and json.loads(done.stdout)
    told = [line for line in done.stderr.splitlines() if "import" in line]
    assert len(told) == 1 and told[0].startswith(f"gistmill: plugins={folder}: its import takes ")
