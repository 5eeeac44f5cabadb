"""Submit and follow jobs on a running Ray cluster through its dashboard, without joining it.
Ray's client reads a token from the environment."""

import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import requests
from ray._private.runtime_env.constants import RAY_JOB_CONFIG_JSON_ENV_VAR
from ray.dashboard.modules.job.common import JOB_ID_METADATA_KEY
from ray.exceptions import AuthenticationError
from ray.job_submission import JobSubmissionClient

from pipeline.cluster.joining import nodes, quiet_stderr, refuse_unreachable
from pipeline.core.errors import EngineError, UsageError, through_proxy

_SECONDS_TO_ANSWER = 8.0
_SECONDS_LOST = 30.0  # a head that does not answer for longer counts as lost
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_BE_STOPPED = 60.0  # until Ray kills a job that ignores its signal


@dataclass(frozen=True)
class Job:
    """A job as its head reports it. `exit_code`: of its driver; None until it ends by itself."""

    id: str
    status: str  # PENDING, RUNNING, SUCCEEDED, FAILED, STOPPED
    exit_code: int | None
    message: str
    metadata: Mapping[str, str]

    @property
    def is_over(self) -> bool:
        return self.status in ("SUCCEEDED", "FAILED", "STOPPED")


def stop_this_job() -> None:
    """Make Ray stop the job whose driver this process is, and wait for the end. No effect if this
    process is no job's driver, or the head does not answer."""
    config = json.loads(os.environ.get(RAY_JOB_CONFIG_JSON_ENV_VAR) or "{}")
    job_id = config.get("metadata", {}).get(JOB_ID_METADATA_KEY)
    with suppress(RuntimeError, OSError), quiet_stderr():
        if job_id and JobSubmissionClient().stop_job(job_id):
            time.sleep(_SECONDS_TO_BE_STOPPED)


class RayJobs:
    """The jobs of one Ray head. Every method raises UsageError, one line, within seconds if the
    head cannot be reached."""

    def __init__(self, address: str) -> None:
        if not re.match(r"https?://.", address):
            raise UsageError(
                f"cluster.address={address}: a run is submitted to the dashboard's address, "
                "http://HEAD:8265"
            )
        self.address = re.sub(r"(?<=//)[^/]*@", "", address)  # printable: without a password
        with self._reaching():
            self._client = _Client(address)

    def all(self) -> list[Job]:
        """The jobs submitted to this head, oldest first."""
        with self._reaching():
            jobs: list[Any] = [job for job in self._client.list_jobs() if job.submission_id]
        return [
            Job(
                job.submission_id,
                str(job.status.value),
                job.driver_exit_code,
                job.message or "",
                job.metadata or {},
            )
            for job in sorted(jobs, key=lambda job: job.start_time or 0)
        ]

    def job(self, job_id: str) -> Job | None:
        return next((job for job in self.all() if job.id == job_id), None)

    def send(
        self,
        job_id: str,
        entrypoint: str,
        folder: Path,
        runtime_env: Mapping[str, Any],
        metadata: Mapping[str, str],
    ) -> None:
        """Start `entrypoint` as a job whose working directory is a copy of `folder`."""
        with self._reaching():
            self._client.submit_job(
                submission_id=job_id,
                entrypoint=entrypoint,
                runtime_env={**runtime_env, "working_dir": str(folder)},
                metadata=dict(metadata),
            )

    def follow(self, job_id: str, show: Callable[[str], None]) -> Job:
        """Pass a job's log to `show` until the job ends; returns its final state. Raises
        EngineError if the head is lost or no longer has the job."""
        num_shown, last_answer = 0, time.monotonic()
        while True:
            try:
                job = self.job(job_id)
                if job is None:
                    raise EngineError(
                        f"{self.address} no longer has job {job_id}; the same command submits the "
                        "run again and resumes it"
                    )
                last_answer = time.monotonic()
                text = ""
                with suppress(UsageError), self._reaching():  # the next look reads the log
                    text = self._client.get_job_logs(job_id)
                show(text[num_shown:])
                num_shown = max(num_shown, len(text))
                if job.is_over:
                    return job
            except UsageError as error:
                if time.monotonic() - last_answer > _SECONDS_LOST:
                    raise EngineError(
                        f"{error}; job {job_id} may still run there, the same command looks again"
                    ) from None
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Turn errors of requests in the `with` block into UsageError."""
        key = f"cluster.address={self.address}{through_proxy(self.address)}"
        try:
            yield
        except AuthenticationError as error:
            wrong = "failed" in str(error).partition(":")[0]
            raise UsageError(
                f"{key}: {'the token is wrong' if wrong else 'a token is required'}; set "
                "RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
            ) from None
        except (ConnectionError, requests.ConnectionError):
            raise UsageError(f"{key}: cannot connect; is the head up?") from None
        except requests.Timeout:
            raise UsageError(f"{key}: no answer in {_SECONDS_TO_ANSWER:g} seconds") from None
        except (RuntimeError, requests.RequestException, ValueError, TypeError, KeyError) as error:
            detail = " ".join(str(error).split())[:300]
            raise UsageError(f"{key}: not the answer of a Ray dashboard ({detail})") from None


class _Client(JobSubmissionClient):
    """Ray's client with a timeout for every request; Ray sets none."""

    def __init__(self, address: str) -> None:
        for handler in logging.getLogger("ray").handlers:
            handler.setLevel(logging.CRITICAL)  # errors are raised instead
        os.environ["RAY_API_SERVER_ADDRESS"] = address  # or RAY_ADDRESS would take precedence
        super().__init__(address)

    def _do_request(self, method: str, endpoint: str, **kwargs: Any) -> requests.Response:
        return super()._do_request(method, endpoint, timeout=_SECONDS_TO_ANSWER, **kwargs)


def wait_for_nodes(address: str, num_nodes: int, seconds: float) -> int:
    """Wait for `num_nodes` machines at the Ray at HOST:PORT; returns how many have joined, after
    `seconds` at most; 0 while the head is not up."""
    last = time.monotonic() + seconds
    while True:
        there = 0
        with suppress(OSError):
            refuse_unreachable(address)
            if not ray.is_initialized():
                with quiet_stderr():
                    ray.init(address=address, logging_level=logging.CRITICAL, log_to_driver=False)
            there = len(nodes())
        if there >= num_nodes or time.monotonic() > last:
            return there
        time.sleep(_SECONDS_BETWEEN_LOOKS)
