"""The content of inspect_ai's `EvalLog`, as JSON, for the answers of a method."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from pipeline.core.settings import sha

_ABOUT = ("document_id", "title", "question_type", "problem", "detail")  # of a sample's metadata
_ID_DIGITS = 22


def inspect_log(head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The log of a run's `head`: run, method, corpus, engine, family, reply_format, started_at
    (UTC), is_incomplete; and its answers (export_inspect.sql) with `values` and `calls`."""
    samples = [_sample(row, head["engine"]) for row in rows]
    return {
        "status": "cancelled" if head["is_incomplete"] else "success",
        "eval": _spec(head, rows),
        "samples": samples,
        "results": _results(rows),
        "stats": {"started_at": head["started_at"], "model_usage": _total_usage(samples)},
    }


def _spec(head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    run, corpus, method = head["run"], head["corpus"], head["method"]
    ids = list(dict.fromkeys(row["question_id"] for row in rows))
    return {
        "created": head["started_at"],
        "eval_id": sha([run, method, head["started_at"]], _ID_DIGITS),
        "run_id": sha([run, head["started_at"]], _ID_DIGITS),
        "task": corpus,
        "task_id": sha([corpus, method], _ID_DIGITS),
        "solver": method,
        "model": f"gistmill/{head['engine']}",
        "dataset": {"name": corpus, "samples": len(ids), "sample_ids": ids},
        "config": {"epochs": len({row["repeat"] for row in rows})},
        "packages": {"gistmill": version("gistmill")},
        "metadata": {name: head[name] for name in ("run", "family", "reply_format")},
    }


def _sample(row: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """One answer. The target of a question with options is the right one's letter, as inspect_ai's
    multiple_choice has it."""
    said, right = row["said"] or "", row["right_index"]
    asked = {"role": "user", "content": row["question"]}
    reply = {"role": "assistant", "content": said}
    stopped = "max_tokens" if row["problem"] == "truncated" else "stop"
    what = f"{row['problem']}: {row['detail'] or 'no answer'}"
    # As keywords: a text "scores" would be the name of a table.
    values = {own["name"]: dict(value=own["value"], answer=row["text"]) for own in row["values"]}
    return dict(
        id=row["question_id"],
        epoch=row["repeat"] + 1,
        input=row["question"],
        choices=row["options"] or None,
        target=row["references"] if right is None else chr(ord("A") + right),
        messages=[asked, reply],
        output={"model": engine, "choices": [{"message": reply, "stop_reason": stopped}]},
        scores=values,
        model_usage={call["engine"]: _usage(call) for call in row["calls"]},
        metadata={name: row[name] for name in _ABOUT},
        error=dict(message=what, traceback="", traceback_ansi="") if _is_failed(row) else None,
    )


def _usage(call: Mapping[str, Any]) -> dict[str, int]:
    """Tokens; inspect_ai counts cached ones apart from other input."""
    return {
        "input_tokens": call["prompt_tokens"] - call["cached_tokens"],
        "input_tokens_cache_read": call["cached_tokens"],
        "output_tokens": call["reply_tokens"],
        "total_tokens": call["prompt_tokens"] + call["reply_tokens"],
    }


def _total_usage(samples: Sequence[Mapping[str, Any]]) -> Mapping[str, Mapping[str, int]]:
    total = defaultdict[str, Counter[str]](Counter)
    for sample in samples:
        for engine, usage in sample["model_usage"].items():
            total[engine].update(usage)
    return total


def _results(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The means, each over the answers that have such a value, a problem counting 0."""
    values = defaultdict[str, list[float]](list)
    for row in rows:
        for value in row["values"]:
            values[value["name"]].append(value["value"])
    means = [
        {
            "name": name,
            "scorer": name,
            "scored_samples": len(own),
            "unscored_samples": len(rows) - len(own),
            "metrics": {"mean": {"name": "mean", "value": sum(own) / len(own)}},
        }
        for name, own in values.items()
    ]
    num_completed = sum(not _is_failed(row) for row in rows)
    return dict(total_samples=len(rows), completed_samples=num_completed, scores=means)


def _is_failed(row: Mapping[str, Any]) -> bool:
    return row["problem"] is not None and not row["said"]
