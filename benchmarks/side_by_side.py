"""Compare a reading phase with other ways to get the same requests answered by vLLM.

All are commands, run one after the other; CPU seconds are those of a command's whole process tree.
"""

import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, figure_of
from benchmarks.peers.measured import PeerRun, measured_peer, run_module
from benchmarks.peers.replayed import Job, Replayed, write
from benchmarks.reading import Reading, read
from benchmarks.recorder import Sent
from jobs.config.run_config import RunConfig
from pipeline.asking.ask import num_slots
from pipeline.core.engine import Request
from pipeline.core.errors import CommandError, EngineError, UsageError
from pipeline.core.registry import load_plugins, loaded_folders
from pipeline.engines.vllm import VllmSettings

WORDS = ("engine.max_workers=1",)
PEERS = {
    "LLM.generate": "benchmarks.peers.offline",
    "ray.data.llm": "benchmarks.peers.ray_data_llm",
    "vLLM's server": "benchmarks.peers.openai_server",
}
_TIMES_OURS = 10  # a peer may take so much longer than the run itself
_A_DAY = 86_400.0  # the run has limits of its own


def peers(config: RunConfig, folder: Path, pairs: int) -> list[Figure]:
    """Gistmill's rates, each peer's rates relative to them in the same pair, and the seconds from
    each command to its first request. A peer that does not run here has one line with the reason.

    Raises UsageError for an engine that the peers cannot have.
    """
    engine = peer_engine(config)
    ours: list[PeerRun] = []
    theirs: dict[str, list[PeerRun]] = {name: [] for name in PEERS}
    failed: dict[str, str] = {}
    for pair in range(pairs):
        own = folder / f"peers-{pair}"
        own.mkdir(parents=True)
        ours.append(_read_here(config, own))
        limit = engine.start_timeout + _TIMES_OURS * ours[-1].replayed.seconds
        for name, module in PEERS.items():
            if name not in failed:
                try:
                    theirs[name].append(measured_peer(module, own, ours[-1].replayed, limit))
                except EngineError as error:
                    failed[name] = f"{name} does not run here: {error}"
    return list(figures(ours, theirs, failed))


def peer_engine(config: RunConfig) -> VllmSettings:
    """The run's engine. Raises UsageError where the peers cannot have the same one."""
    engine, address = config.engine, config.cluster.address
    if not isinstance(engine, VllmSettings):
        raise UsageError(f"engine={engine.name}: peers needs engine=vllm; leave it out")
    for key, is_wrong, why in (
        ("max_workers", engine.max_workers != 1, "peers compares one engine"),
        ("thinking_tokens", engine.thinking_tokens > 0, "the peers do not split replies"),
    ):
        if is_wrong:
            raise UsageError(f"engine.{key}={getattr(engine, key)}: {why}; leave it out")
    if address is not None:
        raise UsageError(f"cluster.address={address}: peers counts its own processes; leave it out")
    return engine


def _read_here(config: RunConfig, folder: Path) -> PeerRun:
    """Read the phase in a command that leaves the peers' job in `folder`; raises its errors."""
    (folder / "config.pickle").write_bytes(pickle.dumps(config))
    words = (folder, *loaded_folders())
    watched = run_module("benchmarks.side_by_side", folder, words, _A_DAY)
    outcome = pickle.loads((folder / "outcome.pickle").read_bytes())
    if isinstance(outcome, CommandError):
        raise outcome
    return PeerRun(outcome, watched)


def main() -> None:
    """Read the phase of config.pickle in a folder; write job.json and outcome.pickle there.
    Further arguments are folders of plugins that the config may need."""
    folder = Path(sys.argv[1])
    load_plugins(sys.argv[2:])
    config: RunConfig = pickle.loads((folder / "config.pickle").read_bytes())
    try:
        reading = read(config, folder / "warehouse")
        answered = [one for one in reading.sent() if one.reply.finish_reason != "abort"]
        write(job_of(peer_engine(config), answered), folder / "job.json")
        outcome: Replayed | CommandError = replayed_of(reading, answered)
    except CommandError as error:
        outcome = error
    (folder / "outcome.pickle").write_bytes(pickle.dumps(outcome))


def job_of(engine: VllmSettings, answered: Sequence[Sent]) -> Job:
    return Job(
        arguments=engine.vllm_arguments(),
        chat_template=engine.chat_template,
        chat_template_kwargs=engine.chat_template_kwargs,
        at_once=num_slots(engine),
        has_gpu=engine.gpus > 0,
        requests=[
            {"messages": one.request.messages, "sampling": _sampling(one.request)}
            for one in answered
        ],
    )


def _sampling(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {
        "max_tokens": request.max_reply_tokens,
        "temperature": request.temperature,
    }
    if request.temperature != 0:
        found["seed"] = request.seed
    if legal := request.constraint:
        found["structured_outputs"] = (
            {"choice": list(legal.choices)} if legal.choices else {"regex": legal.regex}
        )
    return found


def replayed_of(reading: Reading, answered: Sequence[Sent]) -> Replayed:
    """The phase in the form of a peer's result; it ends with the last document's commit."""
    return Replayed(
        first=min(one.begun for one in answered),
        last=reading.driver[-2].clock,
        num_requests=len(answered),
        prompt_tokens=sum(one.reply.prompt_tokens for one in answered),
        reply_tokens=sum(one.reply.reply_tokens for one in answered),
        recorder_cpu=reading.recorder_cpu,
    )


def figures(
    ours: Sequence[PeerRun], theirs: Mapping[str, Sequence[PeerRun]], failed: Mapping[str, str]
) -> Iterator[Figure]:
    """One figure per peer and quantity; only a line for a peer that failed in any pair."""
    recorder = [1000 * one.replayed.recorder_cpu / one.replayed.num_requests for one in ours]
    for what, values in (
        ("gistmill: requests a second", [one.per_second for one in ours]),
        ("gistmill: requests a CPU second", [one.per_cpu_second for one in ours]),
        ("gistmill: seconds to the first request", [one.to_first for one in ours]),
        ("taken out: the recorder's CPU seconds per 1,000 requests", recorder),
    ):
        yield figure_of("peers", what, values)
    for name, measured in theirs.items():
        if name in failed:
            yield Figure(part="peers", what=failed[name], figure=None)
            continue
        pairs = [*zip(measured, ours, strict=True)]
        for what, values in (
            ("requests a second / gistmill's", [a.per_second / b.per_second for a, b in pairs]),
            (
                "requests a CPU second / gistmill's",
                [a.per_cpu_second / b.per_cpu_second for a, b in pairs],
            ),
            ("seconds to the first request", [one.to_first for one in measured]),
        ):
            yield figure_of("peers", f"{name}: {what}", values)


if __name__ == "__main__":
    main()
