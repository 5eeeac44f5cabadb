"""Compose conf/ and `key=value` overrides into one dictionary. The only file importing hydra."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from omegaconf.omegaconf import register_default_resolvers

from pipeline.core.errors import UsageError, refuse_secret, remember_key
from pipeline.core.registry import hint
from pipeline.core.settings import CONF

# Sections whose choices are the files of the group `rater`.
_LIKE_RATER = ("memory_engine", "extractor", "query_expander")
# Keys whose values are taken literally: paths, names and lists of methods contain characters that
# have a meaning in Hydra's grammar.
_PLAIN = {
    "corpus.path", "corpus.name", "corpus.licence", "corpus.stories",
    "embedder.model", "cluster.address", "warehouse", "run",
    "methods", "family", "cluster.image", "cluster.time", "cluster.memory", "cluster.partition",
    "cluster.account", "plugins",
    *(f"{section}.{key}" for section in ("engine", "rater", *_LIKE_RATER)
      for key in ("model", "script", "base_url", "chat_template")),
}  # fmt: skip
# Sections with keys of another library, or with prompts' names: any key may be added there.
_OPEN = re.compile(
    rf"((engine|rater|{'|'.join(_LIKE_RATER)})\.(args|chat_template_kwargs)"
    r"|cluster\.(runtime_env|node_selector)|reply_tokens)(\.|$)"
)
_GROUPS = ("corpus", "memory", "engine", "rater", *_LIKE_RATER, "cluster", "experiment")

OmegaConf.register_new_resolver("conf_dir", lambda: str(CONF), replace=True)
# Resolvers of OmegaConf, and of Hydra, which registers them whenever it starts. They read the
# environment, which would be stored with the run.
_RESOLVERS = (
    "oc.create", "oc.decode", "oc.deprecated", "oc.env", "oc.select", "oc.dict.keys",
    "oc.dict.values", "hydra", "now", "python_version",
)  # fmt: skip


def compose(overrides: Sequence[str], folders: Sequence[Path] = ()) -> dict[str, Any]:
    """conf/config.yaml with `overrides` applied and resolved; `folders`: config folders of plugins.
    Raises UsageError, one line that names the key, for wrong overrides, for secrets, and for
    interpolations of anything but other keys."""
    from hydra import initialize_config_dir  # imported here: 0.1 s, which other verbs do not need
    from hydra.errors import HydraException, OverrideParseException

    with initialize_config_dir(str(CONF), version_base="1.3"):
        for name in _RESOLVERS:  # allow no interpolations but `${other.key}` and `${conf_dir:}`
            OmegaConf.clear_resolver(name)
        try:
            words = [_quoted(word, folders) for word in overrides]
            config = _hydra_compose(words, folders)
            resolved = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
        except OverrideParseException as error:
            word = str(error.override).removeprefix("++")
            raise UsageError(f"{word}: cannot be parsed; put quotes around the value") from None
        except (HydraException, OmegaConfBaseException) as error:
            raise UsageError(_one_line(error, overrides, folders)) from None
        finally:
            register_default_resolvers()
    assert isinstance(resolved, dict)
    composed = {str(key): value for key, value in resolved.items()}
    leaves = [(k, v) for k, v in _paths(composed, "") if not isinstance(v, Mapping | list)]
    for variable in (str(value) for key, value in leaves if value and key.endswith("_env")):
        remember_key(os.environ.get(variable, ""))
    for key, value in leaves:
        refuse_secret(f"{key}={value}")
    return composed


def _paths(section: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in section.items() if isinstance(section, Mapping) else enumerate(section):
        yield f"{prefix}{name}", value
        if isinstance(value, Mapping | list):
            yield from _paths(value, f"{prefix}{name}.")


def _hydra_compose(overrides: Sequence[str], folders: Sequence[Path]) -> Any:
    from hydra import compose as hydra_compose

    escaped = (str(folder).replace("\\", "\\\\").replace("'", "\\'") for folder in folders)
    path = ",".join(f"'file://{folder}'" for folder in escaped)
    return hydra_compose("config", overrides=[*overrides, f"hydra.searchpath=[{path}]"])


def _quoted(word: str, folders: Sequence[Path]) -> str:
    """The override in Hydra's grammar. Raises UsageError if `word` is none, or has no value."""
    key, equals, value = word.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][\w.]*", key):
        raise UsageError(f"{word!r} is not an override; write key=value")
    if key.split(".")[0] == "hydra" or "_target_" in key.split("."):
        raise UsageError(f"{key}: no such key; Hydra's own settings cannot be overridden")
    if not value:
        raise UsageError(f"{key}= is empty; give it a value or leave it out")
    if key in _GROUPS:
        group = "rater" if key in _LIKE_RATER else key
        roots = [folder / group for folder in (CONF, *folders)]
        choices = sorted({file.stem for root in roots for file in root.glob("*.yaml")})
        if value not in choices:
            choice = f"{key}={value[:80]}: no such choice"
            raise UsageError(f"{choice}; {key} is one of {', '.join(choices)}")
    if key in _LIKE_RATER:
        return f"rater@{word}"
    if key not in _PLAIN or value == "null":
        return f"++{word}" if _OPEN.match(key) else word
    # OmegaConf unescapes backslashes before ${, then Hydra those before quotes and at the end.
    inner = re.sub(r"(\\*)\$\{", r"\1\1\${", value)
    inner = re.sub(r"(\\*)('|\Z)", lambda end: end[1] * 2 + (r"\'" if end[2] else ""), inner)
    return f"{'++' if _OPEN.match(key) else ''}{key}='{inner}'"


def _one_line(error: Exception, overrides: Sequence[str], folders: Sequence[Path]) -> str:
    text = str(error)
    if "Missing mandatory value" in text:
        key = getattr(error, "full_key", None) or text.rpartition(" ")[2]
        return f"{key} is not set; add {key}=..."
    if unknown := re.search(r"Could not override '([^']+)'", text):
        groups = [word for word in overrides if word.partition("=")[0] in _GROUPS]
        config = _hydra_compose([_quoted(word, folders) for word in groups], folders)
        keys = sorted(key for key, _ in _paths(OmegaConf.to_container(config), ""))
        section = unknown[1].rpartition(".")[0]
        beside = [key for key in keys if section and key.rpartition(".")[0] == section]
        return f"{unknown[1]}: no such key; {hint(unknown[1], beside or keys)}"
    return " ".join(text.split())
