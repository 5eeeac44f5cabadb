"""How many tokens a second one engine works through: prompts and replies apart.

Of a former run, of the command line, of the simulated engine's settings, or worked out for a kind
of GPU from what its maker states (conf/gpus.yaml): an assumption, and called one.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from jobs.plan.former import Former
from pipeline.engine import EngineSettings
from pipeline.errors import UsageError
from pipeline.settings import CONF
from pipeline.simulated_engine import SimulatedSettings
from pipeline.vllm_engine import VllmSettings

REPLY_COSTS = 10.0  # a token of a reply, in tokens of a prompt, where nothing tells
_DEFAULT_GPU = "h100"
# Keys and values of a token, in bytes: 8 billion parameters have about 131 kB with grouped heads,
# 70 have 328 kB.
_KV_BYTES, _KV_PARAMS, _KV_EXPONENT = 131_072, 8.0, 0.42
_BYTES_OF_WEIGHT = {"fp8": 1.0, "int8": 1.0, "awq": 0.5, "gptq": 0.5, "int4": 0.5, "4bit": 0.5}


@dataclass(frozen=True)
class RateOptions:
    """What the command line says: `rates` PREFILL,DECODE; `gpu` a kind; `params` in billions."""

    like: str | None = None
    rates: str | None = None
    gpu: str | None = None
    gpus: int = 1
    params: float | None = None


@dataclass(frozen=True)
class Rates:
    """Tokens a second of one engine: uncached prompt tokens, and those of all replies together."""

    prefill: float
    decode: float
    how: str

    def seconds(self, uncached: float, reply: float) -> float:
        return uncached / self.prefill + reply / self.decode


@dataclass(frozen=True)
class Gpu:
    """One kind, as in conf/gpus.yaml."""

    kind: str
    tflops: float
    gb_per_second: float
    gb: float


def rates_of(
    settings: EngineSettings, options: RateOptions, former: Former | None, prompt_tokens: float
) -> Rates | None:
    """Those of one engine; null where nothing tells. `prompt_tokens` are those of a mean prompt."""
    if former is not None and former.is_of(settings):
        usual = _usual(settings, options, prompt_tokens)
        ratio = usual.prefill / usual.decode if usual else REPLY_COSTS
        prefill = former.prefill_rate(ratio)
        if prefill:
            how = f"run {former.run}: {former.how}, a reply's token {ratio:.0f} of a prompt's"
            return Rates(prefill, prefill / ratio, how)
    if options.rates is not None:
        return _given(options.rates)
    return _usual(settings, options, prompt_tokens)


def _usual(settings: EngineSettings, options: RateOptions, prompt_tokens: float) -> Rates | None:
    if isinstance(settings, SimulatedSettings):
        decode = settings.decode_tokens_per_second * settings.sequences
        return Rates(settings.prefill_tokens_per_second, decode, "the simulated engine's settings")
    model = getattr(settings, "model", None)
    if model is None or (options.gpu is None and not isinstance(settings, VllmSettings)):
        return None
    gpu = gpu_of(options.gpu or _DEFAULT_GPU)
    params = options.params or params_of(str(model))
    if params is None:
        return None
    return by_data_sheet(gpu, settings, params, prompt_tokens)


def refuse_useless(options: RateOptions) -> None:
    """Raise UsageError for a kind of GPU or a pair of rates that is none, before any work."""
    if options.gpu is not None:
        gpu_of(options.gpu)
    if options.rates is not None:
        _given(options.rates)


def _given(written: str) -> Rates:
    parts = written.split(",")
    try:
        prefill, decode = (float(part) for part in parts)
    except ValueError:
        raise UsageError(f"--rates {written}: write PREFILL,DECODE in tokens a second") from None
    if not (0 < prefill < float("inf") and 0 < decode < float("inf")):
        raise UsageError(f"--rates {written}: both must be above 0")
    return Rates(prefill, decode, f"--rates {written}")


def _sheet() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CONF / "gpus.yaml").read_text(encoding="utf-8"))
    return found


def gpu_of(kind: str) -> Gpu:
    """Raises UsageError for a kind that conf/gpus.yaml has not."""
    known = _sheet()["gpus"]
    if kind not in known:
        raise UsageError(f"--gpu {kind}: not known; it is one of {', '.join(known)}")
    return Gpu(kind, **known[kind])


def params_of(model: str) -> float | None:
    """Billions of parameters by the model's name; null where it does not say."""
    found = re.findall(r"(?:(\d+)x)?(\d+(?:\.\d+)?)b\b", Path(model).name.lower())
    sizes = [int(times or 1) * float(size) for times, size in found]
    return max(sizes, default=None)


def by_data_sheet(gpu: Gpu, settings: EngineSettings, params: float, prompt_tokens: float) -> Rates:
    """Prefill is bound by arithmetic, two operations a parameter and token. Each step of decoding
    reads the weights once and the keys and values of all sequences that fit.

    Raises UsageError where the weights alone do not fit.
    """
    sheet, num_gpus = _sheet(), max(1.0, settings.gpus)
    weights_gb = params * _bytes_of_weight(settings)
    kv_gb = _KV_BYTES * (params / _KV_PARAMS) ** _KV_EXPONENT * max(1.0, prompt_tokens) / 1e9
    room_gb = num_gpus * gpu.gb * sheet["memory_share"] - weights_gb
    if room_gb <= 0:
        raise UsageError(
            f"--gpu {gpu.kind}: {params:g} billion parameters take {weights_gb:.0f} GB, an engine "
            f"has {num_gpus:g} x {gpu.gb:g} GB; set engine.args.tensor_parallel_size or another GPU"
        )
    at_once = max(1.0, min(settings.sequences, room_gb / kv_gb))
    operations = num_gpus * gpu.tflops * 1e12 * sheet["prefill_share"]
    prefill = operations / (2 * params * 1e9)
    gb_a_second = num_gpus * gpu.gb_per_second * sheet["decode_share"]
    decode = at_once * gb_a_second / (weights_gb + at_once * kv_gb)
    how = f"assumed from the data sheet of {num_gpus:g} x {gpu.kind} for {params:g}B, not measured"
    return Rates(prefill, min(decode, prefill), how)


def _bytes_of_weight(settings: EngineSettings) -> float:
    quantization = getattr(settings, "args", {}).get("quantization", "")
    said = f"{quantization} {getattr(settings, 'model', '')}"
    found = [size for name, size in _BYTES_OF_WEIGHT.items() if name in said.lower()]
    return min(found, default=2.0)
