"""From tokens to seconds and money.

Rates are those of a former run, of the command line, of the simulated engine's settings, or worked
out for a kind of GPU from what its maker states (conf/gpus.yaml): an assumption, and called one.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from jobs.eta import REPLY_COSTS
from jobs.plan.former import Former
from pipeline.engine import EngineSettings
from pipeline.errors import UsageError
from pipeline.settings import CONF
from pipeline.simulated_engine import SimulatedSettings
from pipeline.vllm_engine import VllmSettings

_DEFAULT_GPU = "h100"
# Keys and values of a token, in bytes: 8 billion parameters have about 131 kB with grouped heads,
# 70 have 328 kB.
_KV_BYTES, _KV_PARAMS, _KV_EXPONENT = 131_072, 8.0, 0.42
_BYTES_OF_WEIGHT = {"fp8": 1.0, "int8": 1.0, "awq": 0.5, "gptq": 0.5, "int4": 0.5, "4bit": 0.5}


@dataclass(frozen=True)
class Options:
    """What the command line says: `rates` PREFILL,DECODE in tokens a second; `gpu` a kind; `params`
    in billions; `price` PROMPT,REPLY or PROMPT,REPLY,CACHED of a million tokens."""

    like: str | None = None
    rates: str | None = None
    gpu: str | None = None
    gpus: int = 1
    params: float | None = None
    price: str | None = None

    def check(self, settings: EngineSettings) -> None:
        """Raise UsageError for what is of no use, before any work."""
        num_engines(settings, self.gpus)
        if self.gpu is not None:
            _gpu(self.gpu)
        if self.rates is not None and min(_numbers("rates", self.rates, "PREFILL,DECODE")) <= 0:
            raise UsageError(f"--rates {self.rates}: both must be above 0")
        if self.price is not None:
            self.money(0, 0, 0)

    def money(self, prompt: float, uncached: float, reply: float) -> float | None:
        """What tokens cost; a cached one as much as others where its price is not named."""
        if self.price is None:
            return None
        per_prompt, per_reply, *more = _numbers("price", self.price, "PROMPT,REPLY[,CACHED]")
        cached = (prompt - uncached) * (more[0] if more else per_prompt)
        return (uncached * per_prompt + cached + reply * per_reply) / 1e6


def _numbers(option: str, written: str, form: str) -> list[float]:
    """Two numbers, or three where the form has a third."""
    try:
        found = [float(part) for part in written.split(",")]
    except ValueError:
        found = []
    if len(found) not in (2, 2 + ("[" in form)) or not all(0 <= n < float("inf") for n in found):
        unit = "tokens a second" if option == "rates" else "money a million tokens"
        raise UsageError(f"--{option} {written}: write {form} in {unit}")
    return found


@dataclass(frozen=True)
class Rates:
    """Tokens a second of one engine: uncached prompt tokens, and those of all replies together."""

    prefill: float
    decode: float
    how: str

    def seconds(self, uncached: float, reply: float) -> float:
        return uncached / self.prefill + reply / self.decode


def rates_of(
    settings: EngineSettings, options: Options, like: Former | None, prompt_tokens: float
) -> Rates | None:
    """Those of one engine; null where nothing tells. `prompt_tokens` are those of a mean prompt."""
    if options.rates is not None:
        prefill, decode = _numbers("rates", options.rates, "PREFILL,DECODE")
        return Rates(prefill, decode, f"--rates {options.rates}")
    usual = _usual(settings, options, prompt_tokens)
    speed = like.speed_of(settings) if like else None
    if like is None or speed is None or not speed.seconds:
        return usual
    ratio = usual.prefill / usual.decode if usual else REPLY_COSTS
    prefill = (speed.uncached_tokens + ratio * speed.reply_tokens) / speed.seconds
    how = f"by the clock of run {like.run}, a reply's token taken as {ratio:.0f} of a prompt's"
    return Rates(prefill, prefill / ratio, how) if prefill else usual


def _usual(settings: EngineSettings, options: Options, prompt_tokens: float) -> Rates | None:
    if isinstance(settings, SimulatedSettings):
        decode = settings.decode_tokens_per_second * settings.sequences
        return Rates(settings.prefill_tokens_per_second, decode, "the simulated engine's settings")
    model = getattr(settings, "model", None)
    if model is None or (options.gpu is None and not isinstance(settings, VllmSettings)):
        return None
    params = options.params or params_of(str(model))
    if params is None:
        return None
    return _by_data_sheet(options.gpu or _DEFAULT_GPU, settings, params, prompt_tokens)


def num_engines(settings: EngineSettings, gpus: int) -> int:
    """How many work at once; those without GPUs: as many as the config asks for.

    Raises UsageError where one engine needs more GPUs than there are.
    """
    if not settings.gpus:
        return settings.max_workers or settings.min_workers
    num = int(gpus / settings.gpus)
    if not num:
        raise UsageError(f"--gpus {gpus}: an engine needs {settings.gpus:g}; raise it")
    return min(num, settings.max_workers or num)


def params_of(model: str) -> float | None:
    """Billions of parameters by the model's name; null where it does not say."""
    found = re.findall(r"(?:(\d+)x)?(\d+(?:\.\d+)?)b\b", Path(model).name.lower())
    return max((int(times or 1) * float(size) for times, size in found), default=None)


def _sheet() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CONF / "gpus.yaml").read_text(encoding="utf-8"))
    return found


def _gpu(kind: str) -> dict[str, float]:
    known: dict[str, dict[str, float]] = _sheet()["gpus"]
    if kind not in known:
        raise UsageError(f"--gpu {kind}: not known; it is one of {', '.join(known)}")
    return known[kind]


def _by_data_sheet(
    kind: str, settings: EngineSettings, params: float, prompt_tokens: float
) -> Rates:
    """Prefill is bound by arithmetic, two operations a parameter and token. Each step of decoding
    reads the weights once and the keys and values of all sequences that fit.

    Raises UsageError where the weights alone do not fit.
    """
    sheet, gpu, num_gpus = _sheet(), _gpu(kind), max(1.0, settings.gpus)
    weights_gb = params * _bytes_of_weight(settings)
    kv_gb = _KV_BYTES * (params / _KV_PARAMS) ** _KV_EXPONENT * max(1.0, prompt_tokens) / 1e9
    free_gb = num_gpus * gpu["gb"] * sheet["memory_share"] - weights_gb
    if free_gb <= 0:
        raise UsageError(
            f"--gpu {kind}: {params:g} billion parameters take {weights_gb:.0f} GB, an engine "
            f"has {num_gpus:g} x {gpu['gb']:g} GB; set engine.args.tensor_parallel_size or another "
            "GPU"
        )
    at_once = max(1.0, min(settings.sequences, free_gb / kv_gb))
    prefill = num_gpus * gpu["tflops"] * 1e12 * sheet["prefill_share"] / (2 * params * 1e9)
    gb_a_second = num_gpus * gpu["gb_per_second"] * sheet["decode_share"]
    decode = at_once * gb_a_second / (weights_gb + at_once * kv_gb)
    how = f"assumed from the data sheet of {num_gpus:g} x {kind} for {params:g}B, not measured"
    return Rates(prefill, min(decode, prefill), how)


def _bytes_of_weight(settings: EngineSettings) -> float:
    quantization = getattr(settings, "args", {}).get("quantization", "")
    named = f"{quantization} {getattr(settings, 'model', '')}"
    found = [size for name, size in _BYTES_OF_WEIGHT.items() if name in named.lower()]
    return min(found, default=2.0)
