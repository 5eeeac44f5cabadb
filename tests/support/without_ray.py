"""Which commands of tests work without Ray."""

import re
from pathlib import Path


def without_ray(*words: str | Path) -> list[str]:
    """The words of a command, with `cluster=inline` unless they name a cluster, or vLLM, which
    would load its model into the process of the test."""
    is_named = any(str(word).startswith("cluster=") for word in words)
    if _executes(*words) and not is_named and not needs_ray(*words):
        words = (*words, "cluster=inline")
    return [str(word) for word in words]


def needs_ray(*words: str | Path) -> bool:
    """Whether they name a cluster or vLLM."""
    return any(_OF_A_CLUSTER.match(str(word)) for word in words)


_OF_A_CLUSTER = re.compile(r"cluster=(?!inline$)|\w+=vllm$")


def _executes(verb: str | Path = "", *words: str | Path) -> bool:
    """Whether these words ask a model: `rate sheet` does not, and `run --help` only explains."""
    if "--help" in words or "-h" in words:
        return False
    people = ("sheet", "import", "agreement")
    return verb in ("run", "score") or (verb == "rate" and not {*words[:1]} & {*people})
