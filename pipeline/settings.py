"""The base class of settings sections, the cluster's settings, and the hash used everywhere."""

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

CONF = Path(__file__).parent.parent / "conf"


class Settings(BaseModel):
    """Frozen; refuses unknown keys and type coercion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def sha(content: Any, digits: int = 64) -> str:
    """Hex of the sha256 of the canonical JSON of `content` (sorted keys, no spaces)."""
    return hashlib.sha256(_CANONICAL.encode(content).encode()).hexdigest()[:digits]


# Made once: a plan of 200,000 questions takes millions of hashes.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class ClusterSettings(Settings):
    """The keys of a `cluster` section that every kind of cluster has. Never hashed.

    `address`: null starts a local Ray, `auto` joins the one this machine is part of, and a URL is
    the dashboard that `gistmill submit` sends the run to.
    """

    name: str
    address: str | None
    autoscales: bool  # whether the cluster adds machines on demand
    wait_minutes: PositiveFloat  # for the first workers to be placed
    scoring_workers: PositiveInt | None  # null: one per CPU
    stall_minutes: PositiveFloat  # without progress, after which the run ends
    deadline: str | None  # HH:MM (the next such local time) or an ISO 8601 date and time
    grace_minutes: PositiveFloat  # to finish what is in flight, before the deadline or on SIGTERM
