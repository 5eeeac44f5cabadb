"""Why a vLLM engine does not start, in one line with the mend. Imports no vllm."""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError


@contextmanager
def logged() -> Iterator[Path]:
    """Within it, vLLM's processes keep their errors in a file: why one of them does not start
    reaches its parent in no other way. On standard error stands what is a warning or worse.

    A logging configuration of the user's own is left alone; then the file stays empty.
    """
    for key, value in _QUIET.items():
        os.environ.setdefault(key, value)
    with tempfile.TemporaryDirectory(prefix="gistmill-vllm-") as folder:
        log, config = Path(folder) / "errors.log", Path(folder) / "logging.json"
        log.touch()
        config.write_text(json.dumps(_logging(str(log))), encoding="utf-8")
        key = "VLLM_LOGGING_CONFIG_PATH"
        is_ours = os.environ.setdefault(key, str(config)) == str(config)
        try:
            yield log
        finally:
            if is_ours:
                del os.environ[key]


_QUIET = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork of a process with threads may hang
    "TOKENIZERS_PARALLELISM": "false",
}


def _logging(file: str) -> dict[str, Any]:
    level = os.environ["VLLM_LOGGING_LEVEL"]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(process)d %(levelname)s %(name)s %(message)s"}},
        "handlers": {
            "terminal": {"class": "logging.StreamHandler", "formatter": "plain", "level": level},
            "file": {"class": "logging.FileHandler", "filename": file, "level": "ERROR"},
        },
        "loggers": {"vllm": {"handlers": ["terminal", "file"], "level": level, "propagate": False}},
    }


# The last line of a traceback; those that only point at another one are no cause.
_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): (.+)$", re.MULTILINE)
_POINTS_ELSEWHERE = ("root cause", "initialization failed", "background process", "Executor failed")


def cause(error: Exception, log: Path) -> str:
    """Why, in one line: what an engine's process kept in the log, or else what is raised here."""
    found = [
        line
        for line in _RAISED.findall(log.read_text(encoding="utf-8", errors="replace"))
        if not any(words in line for words in _POINTS_ELSEWHERE)
    ]
    return _first_sentence(found[-1]) if found else one_line(error)


def one_line(error: Exception) -> str:
    """The first sentence of an error; of pydantic's, the first key that is wrong."""
    if isinstance(error, ValidationError):
        wrong = error.errors()[0]
        key = f"{wrong['loc'][0]}={wrong['input']!r}: " if wrong["loc"] else ""
        return key + _first_sentence(wrong["msg"].removeprefix("Value error, "))
    return _first_sentence(str(error)).strip('"') or type(error).__name__


def _first_sentence(text: str) -> str:
    return re.split(r"[.!]\s+(?=[A-Z])", " ".join(text.split()))[0].rstrip(".!")


def mend(cause: str) -> str:
    """What most often helps, where the cause is of a known kind."""
    for words, way in _MENDS.items():
        if re.search(words, cause, re.IGNORECASE):
            return f"; {way}"
    return ""


_MENDS = {
    r"not a local folder|repository not found|40[14] client|valid model identifier|connect to|"
    r"snapshot folder": "set engine.model to a model's name or its folder",
    r"memory|kv cache": "lower engine.context_tokens, raise engine.args.gpu_memory_utilization "
    "(on CPUs VLLM_CPU_KVCACHE_SPACE), or spread it by engine.args.tensor_parallel_size",
    r"device type|no gpu|no cuda": "give the worker GPUs with engine.gpus_per_worker",
}
