"""The base of every settings section, and the one way to hash settings and content."""

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

CONF = Path(__file__).parent.parent / "conf"


class Settings(BaseModel):
    """Frozen; refuses unknown keys and silent type changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def sha(content: Any, digits: int = 64) -> str:
    """Hex of the sha256 of the canonical JSON of `content` (sorted keys, no spaces)."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


class ClusterSettings(Settings):
    """Where a run works and when it ends; what every kind of cluster has. Never hashed.

    `address` is null for a Ray of our own, `auto` for the one this machine is part of, else that of
    its dashboard, which `gistmill submit` talks to.
    """

    name: str
    address: str | None
    autoscales: bool  # machines are fetched when workers ask for them
    wait_minutes: PositiveFloat  # for the first workers to be placed
    scoring_workers: PositiveInt | None  # null: one per CPU
    stall_minutes: PositiveFloat  # without any progress; then the run ends
    deadline: str | None  # HH:MM, the next such time here, or an ISO 8601 date and time
    grace_minutes: PositiveFloat  # for what is in flight: before the deadline, or after SIGTERM
