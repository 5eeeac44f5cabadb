"""Refuse secrets in a command's words or in YAML, with a message that does not repeat them.

Words and YAML are stored with a run, printed and sent to clusters; a secret belongs into an
environment variable.
"""

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.core.errors import LeftOutWarning, UsageError
from pipeline.core.redaction import has_key, has_password, remember_key

# Sections whose keys are another library's; our own keys hold no secrets by their names.
_OPEN = re.compile(r"\w+\.(args|chat_template_kwargs|runtime_env)\.(.+)")
_TO_RAY = "cluster.runtime_env"  # with cluster=ray sent to Ray alone, never stored
_NAMES = re.compile(
    r"^(key|token|auth|pass|pw|pwd|pat|extraquery)$|(api|access|account|user|secret|private|signing|subscription)key$"
    r"|(hf|auth|access|api|bearer|session|security|refresh|id)token$"
    r"|secret|passw|passphrase|authorization|credential|cookie|signature$|^sig$|headers?$"
)
_IN_QUERY = re.compile(r"[?&;#]([\w.-]+)=")
_IN_SHELL = re.compile(r"(\w+)=['\"]?[^\s'\"$]")  # NAME=value in lines of a job's script; no $NAME
_KNOWN = re.compile(
    r"\bsk-(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{16,}|\b(hf_|gsk_|xai-|gh[pousr]_)[A-Za-z0-9]{20,}"
    r"|\b(github_pat_|xox[abp]-|AIza)[\w-]{20,}|\bAKIA[0-9A-Z]{16}\b"
    r"|\bBearer\s+[\w.~+/-]{16,}|\beyJ[\w-]{16,}\."
)
# In the path of an address: a key.
_RANDOM = re.compile(
    r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)


def refuse_secret(word: str) -> None:
    """Raise UsageError where a `key=value` word holds what looks like a secret."""
    key, _, value = word.partition("=")
    if not key.startswith(_TO_RAY):
        _refuse(key, value)


def refuse_secrets(config: Mapping[str, Any]) -> None:
    """Raise UsageError naming the first key of a composed config that holds a secret. The API keys
    of its engines, in environment variables, are known as secrets from now on."""
    to_ray = config.get("cluster", {}).get("name") == "ray"
    leaves = [*_leaves(config, "")]
    for key, value in leaves:
        if key.endswith(".api_key_env") and isinstance(value, str):
            given = os.environ.get(value, "")
            if remember_key(given) != given:
                warnings.warn(
                    f"white space around the key in {value}", LeftOutWarning, stacklevel=2
                )
    for key, value in leaves:
        if not (to_ray and key.startswith(f"{_TO_RAY}.")):
            _refuse(key, value)


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    inner = value.items() if isinstance(value, Mapping) else enumerate(value)
    for name, part in inner:
        path = f"{key}.{name}" if key else str(name)
        if isinstance(part, Mapping | list):
            yield from _leaves(part, path)
        else:
            yield path, part


def _refuse(key: str, value: Any) -> None:
    is_named = (found := _OPEN.fullmatch(key)) and any(map(_is_secret, found[2].split(".")))
    if is_named or (isinstance(value, str) and _holds_secret(key, value)):
        raise UsageError(
            f"{key}: set no secret here, as it is stored with the run; put it into an environment "
            "variable (HF_TOKEN, AWS_SECRET_ACCESS_KEY, the one that engine.api_key_env names)"
        )


def _is_secret(name: str) -> bool:
    return bool(_NAMES.search(re.sub("[^a-z]", "", name.lower())))


def _holds_secret(key: str, value: str) -> bool:
    names = _IN_QUERY.findall(value)
    if key.startswith("cluster."):
        names += _IN_SHELL.findall(value)
    if key.endswith(".base_url") and _RANDOM.search(value.partition("://")[2].partition("/")[2]):
        return True
    is_one = has_password(value) or has_key(value) or _KNOWN.search(value)
    return bool(is_one) or any(map(_is_secret, names))
