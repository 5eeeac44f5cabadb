"""vLLM's offline engine: `LLM.generate` on a list of all prompts."""

import time
from typing import Any

from vllm import LLM, SamplingParams
from vllm.inputs import tokens_input
from vllm.sampling_params import StructuredOutputsParams

from benchmarks.peers.replayed import Job, Replayed, command


def replay(job: Job) -> Replayed:
    """The requests are tokenized here one after the other, then handed over all at once."""
    llm = LLM(**job.arguments)
    tokenizer = llm.get_tokenizer()
    first, template = time.time(), job.template_text()
    prompts = [
        tokenizer.apply_chat_template(
            one["messages"],
            chat_template=template,
            add_generation_prompt=True,
            return_dict=False,
            **job.chat_template_kwargs,
        )
        for one in job.requests
    ]
    sampling = [sampling_params(**one["sampling"]) for one in job.requests]
    outputs = llm.generate([tokens_input(ids) for ids in prompts], sampling, use_tqdm=False)
    return Replayed(
        first=first,
        last=time.time(),
        num_requests=len(outputs),
        prompt_tokens=sum(len(output.prompt_token_ids) for output in outputs),
        reply_tokens=sum(len(output.outputs[0].token_ids) for output in outputs),
    )


def sampling_params(structured_outputs: dict[str, Any] | None = None, **own: Any) -> SamplingParams:
    legal = StructuredOutputsParams(**structured_outputs) if structured_outputs else None
    return SamplingParams(structured_outputs=legal, **own)


if __name__ == "__main__":
    command(replay)
