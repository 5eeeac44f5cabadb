"""Explain in one line why a vLLM engine did not start, and what to do. Imports no vllm."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.files.processes import own_folder


@contextmanager
def vllm_errors_in_file() -> Iterator[Path]:
    """Configure vLLM's logging inside the context; yields the file that errors are logged to.

    An engine's child process reports why it failed only in its log. Warnings and errors also go to
    standard error. A user's own logging configuration is kept; the file stays empty then.
    """
    for key, value in _ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    folder = own_folder("vllm")
    log, config = folder / "errors.log", folder / "logging.json"
    log.touch()
    config.write_text(json.dumps(_logging_config(str(log))), encoding="utf-8")
    key = "VLLM_LOGGING_CONFIG_PATH"
    is_ours = os.environ.setdefault(key, str(config)) == str(config)
    try:
        yield log
    finally:
        if is_ours:
            del os.environ[key]
        shutil.rmtree(folder, ignore_errors=True)


_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork of a process with threads may hang
    "TOKENIZERS_PARALLELISM": "false",
}


def _logging_config(file: str) -> dict[str, Any]:
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


# The last line of a traceback. Some only refer to another traceback with the root cause.
_TRACEBACK_END = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): (.+)$", re.MULTILINE)
_REFERS_TO_ANOTHER = (
    "root cause",
    "initialization failed",
    "background process",
    "Executor failed",
)


def root_cause(error: Exception, log: Path) -> str:
    """One line: the last error in the log of vLLM's processes, else `error`."""
    found = [
        line
        for line in _TRACEBACK_END.findall(log.read_text(encoding="utf-8", errors="replace"))
        if not any(words in line for words in _REFERS_TO_ANOTHER)
    ]
    return _first_sentence(found[-1]) if found else one_line(error)


def one_line(error: Exception) -> str:
    """The first sentence of an error; for pydantic, of the first wrong key."""
    if isinstance(error, ValidationError):
        wrong = error.errors()[0]
        key = f"{wrong['loc'][0]}={wrong['input']!r}: " if wrong["loc"] else ""
        return key + _first_sentence(wrong["msg"].removeprefix("Value error, "))
    return _first_sentence(str(error)).strip('"') or type(error).__name__


def _first_sentence(text: str) -> str:
    return re.split(r"[.!]\s+(?=[A-Z])", " ".join(text.split()))[0].rstrip(".!")


def advice(cause: str) -> str:
    """`; ` and what to do about a known kind of root cause; "" for others."""
    for pattern, what_to_do in _ADVICE.items():
        if re.search(pattern, cause, re.IGNORECASE):
            return f"; {what_to_do}"
    return ""


_ADVICE = {
    r"not a local folder|repository not found|40[14] client|valid model identifier|connect to|"
    r"snapshot folder": "set engine.model to a Hugging Face name or to a model's folder",
    r"memory|kv cache": "lower engine.context_tokens, raise engine.args.gpu_memory_utilization "
    "(on CPUs VLLM_CPU_KVCACHE_SPACE), or use more GPUs by engine.args.tensor_parallel_size",
    r"device type|no gpu|no cuda": "give the worker GPUs with engine.gpus_per_worker",
}
