"""Ray Data's own batch inference: `ray.data.llm` with its vLLM processor, one replica."""

import json
import os
import time
from typing import Any

import ray
from ray.data.llm import build_processor, vLLMEngineProcessorConfig
from vllm.sampling_params import RequestOutputKind

from benchmarks.peers.replayed import Job, Replayed, command

_MIN_CPUS = 8  # as Ray counts: each stage of the processor claims one


def replay(job: Job) -> Replayed:
    """The requests, one per row; the first is sent when vLLM records its arrival."""
    ray.init(num_cpus=max(_MIN_CPUS, os.cpu_count() or 1), log_to_driver=False)
    processor = build_processor(
        processor_config(job),
        preprocess=_prepared,
        postprocess=_measured,
    )
    items = [{"request": json.dumps(one)} for one in job.requests]
    rows = processor(ray.data.from_items(items)).take_all()
    return Replayed(
        first=min(row["arrived"] for row in rows),
        last=time.time(),
        num_requests=len(rows),
        prompt_tokens=sum(row["prompt_tokens"] for row in rows),
        reply_tokens=sum(row["reply_tokens"] for row in rows),
    )


def processor_config(job: Job) -> Any:
    # Its default `log_engine_metrics` needs a GPU; vLLM's own statistics have the time of arrival.
    arguments = {**job.arguments, "disable_log_stats": False}
    devices = {"CPU": 1, "GPU": 1} if job.has_gpu else {"CPU": 1}
    return vLLMEngineProcessorConfig(
        model_source=arguments.pop("model"),
        engine_kwargs=arguments,
        log_engine_metrics=False,
        placement_group_config={"bundle_per_worker": devices},
        chat_template_stage={
            "chat_template": job.template_text(),
            "chat_template_kwargs": job.chat_template_kwargs,
        },
    )


def _prepared(row: dict[str, Any]) -> dict[str, Any]:
    request = json.loads(row["request"])
    # The default, as an enum: Arrow has no type for it, so Ray pickles the parameters. Otherwise it
    # fails where rows of a batch have different parameters, as with and without constraints.
    own = {"output_kind": RequestOutputKind.CUMULATIVE}
    return {"messages": request["messages"], "sampling_params": {**own, **request["sampling"]}}


def _measured(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "arrived": row["metrics"]["arrival_time"],
        "prompt_tokens": row["num_input_tokens"],
        "reply_tokens": row["num_generated_tokens"],
        "reply": row["generated_text"],
    }


if __name__ == "__main__":
    command(replay)
