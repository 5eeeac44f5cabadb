"""The base class of settings sections, the cluster's settings, and the hash used everywhere."""

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from pipeline.core.errors import UsageError, remember_key

M = TypeVar("M", bound=BaseModel)
# In the package gistmill, as other packages might also install a folder `conf`. In a checkout, a
# link to conf/ at the top.
CONF = (Path(__file__).parents[2] / "gistmill" / "conf").resolve()
# Made once: a plan of 200,000 questions takes millions of hashes.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C if libyaml is there
Minutes = Annotated[float, Field(gt=0, le=1_000_000)]  # at most two years


class Settings(BaseModel):
    """Base class of settings sections: frozen; refuses unknown keys and type coercion."""

    # Built when first used: commands that only read a warehouse need few settings.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """Redact the keys that `*_env` names in a worker's process too, which reads no config."""
        super().__setstate__(state)
        for name, variable in self:
            if name.endswith("_env") and variable:
                remember_key(os.environ.get(variable, ""))


def sha(content: Any, digits: int = 64) -> str:
    """Hex of the sha256 of the JSON of `content`: sorted keys, no spaces, ASCII only."""
    return sha_of_json(_CANONICAL.encode(content), digits)


def sha_of_json(content: str, digits: int = 64) -> str:
    """`sha` for callers that have most of the JSON already: a plan takes millions of hashes."""
    return hashlib.sha256(content.encode()).hexdigest()[:digits]


def text_of(file: Path) -> str:
    """The text of a file. Raises UsageError naming it if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 ({error.reason}); save it as UTF-8") from error


def read_yaml(file: Path, kind: type[M]) -> M:
    """The content of a YAML file. Raises UsageError, naming file and key, for wrong content."""
    return parsed_yaml(text_of(file), kind, file)


def parsed_yaml(text: str | bytes, kind: type[M], file: object) -> M:
    """The content of a YAML text; an empty one has no keys. Raises UsageError that begins with
    `file` and names the wrong key."""
    try:
        return kind.model_validate(yaml.load(text, YAML_LOADER) or {})
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UsageError(f"{file}: {key}: {first['msg'].removeprefix('Value error, ')}") from error


class ClusterSettings(Settings):
    """The keys of a `cluster` section that every kind of cluster has. Never hashed."""

    name: str
    # null starts a local Ray, `auto` joins the one that this machine is part of, and a URL is the
    # dashboard that `gistmill submit` sends the run to.
    address: str | None
    autoscales: bool  # whether the cluster adds machines on demand
    wait_minutes: Minutes  # for the first workers to be placed
    scoring_workers: PositiveInt | None  # null: one per CPU
    stall_minutes: Minutes  # without progress, after which the run ends
    # Seconds for which a refused file operation is repeated. Earlier versions stored no such key.
    storage_seconds: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    deadline: str | None  # HH:MM (the next such local time) or an ISO 8601 date and time
    grace_minutes: Minutes  # to finish what is in flight, before the deadline or on SIGTERM
