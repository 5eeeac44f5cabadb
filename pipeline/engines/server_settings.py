"""The settings of engines that send requests to an OpenAI-compatible server.

The API key is read from an environment variable. Settings are stored with the run and therefore
hold only the variable's name.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, field_validator

from pipeline.core.engine import EngineSettings, Request
from pipeline.core.errors import StartError, UsageError
from pipeline.core.prompts import Constraint
from pipeline.engines.openai_client import OpenAIClient
from pipeline.engines.outage import FailedError

_MODELS_SHOWN = 5
_SET_BY_ENGINE = {
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "seed",
    "structured_outputs",
    "stream",
    "n",
}


class ServerSettings(EngineSettings):
    """The keys that reach an OpenAI-compatible server; conf/engine/openai.yaml explains them.

    `args` are added to the body of every request; `sequences` limits the requests in flight.
    """

    base_url: str
    model: str = Field(min_length=1)
    api_key_env: str | None
    args: dict[str, Any]
    retries: NonNegativeInt
    outage_minutes: NonNegativeFloat
    thinking_tokens: NonNegativeInt
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"]
    structured_outputs: Literal["vllm", "none"]

    keeps_deadline: ClassVar[bool] = True
    leaves_out_temperature: ClassVar[bool] = True

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if re.search("[@?#]", url):  # the message leaves the value out: it may hold a secret
            raise UsageError(
                "engine.base_url (or rater.base_url) has an @, ? or #; write http://HOST:PORT/v1 "
                "and put a key or password into the variable that api_key_env names"
            )
        if not re.match("https?://[^/]", url):
            raise ValueError("not an address; write http://HOST:PORT/v1")
        return url.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _is_variable(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch("[A-Z_][A-Z0-9_]*", name):
            # The message leaves the value out: it may be the key itself.
            raise UsageError(
                "engine.api_key_env (or rater.api_key_env) is not the name of an environment "
                "variable (A-Z, 0-9, _); put the key into such a variable and write its name here"
            )
        return name

    @field_validator("args")
    @classmethod
    def _sets_only_free_keys(cls, args: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_SET_BY_ENGINE & args.keys()):
            raise ValueError(f"{taken[0]} is set by the engine itself; remove it from args")
        return args

    @property
    def takes_constraints(self) -> bool:
        return self.structured_outputs != "none"

    @property
    def title(self) -> str:
        return f"{self.name}:{self.model}"

    def own_identity(self) -> Mapping[str, Any]:
        return {"model": self.model, "args": self.args, "thinking_tokens": self.thinking_tokens}

    async def usable_context(self, client: OpenAIClient) -> int:
        """The tokens for prompt and answer: `context_tokens`, or the context that the server lists,
        less `thinking_tokens`. A server that lists no models is taken at `context_tokens`.

        Raises StartError where it is unknown or too small, or the server does not serve the model;
        FailedError where no server answers."""
        models = await self._listed(client)
        if models is None and self.context_tokens is None:
            raise StartError(
                f"{client.address}: lists no models; make sure that the address ends in /v1, or "
                "set engine.context_tokens if it has no list"
            )
        if models is not None and self.model not in models:
            names = [*list(models)[:_MODELS_SHOWN], *["..."] * (len(models) > _MODELS_SHOWN)]
            listed = ", ".join(names) or "no models"
            raise StartError(
                f"engine.model={self.model}: the server serves {listed}; set it to a served model"
            )
        served = models[self.model] if models else None
        total = self.context_tokens or served
        if total is None:
            raise StartError(
                f"{client.address}: the server does not list its context length; set "
                "engine.context_tokens"
            )
        if served and total > served:
            raise StartError(
                f"engine.context_tokens={total}: the server has a context of {served}; lower it"
            )
        if total <= self.thinking_tokens:
            raise StartError(
                f"engine.thinking_tokens={self.thinking_tokens}: leaves no tokens for prompt and "
                f"answer in a context of {total}; lower it"
            )
        return total - self.thinking_tokens

    async def _listed(self, client: OpenAIClient) -> dict[str, int | None] | None:
        """The models that the server lists; None if it has no such list. Where the context is not
        set, and where it refuses the key or nothing answers, FailedError is raised."""
        try:
            return await client.models()
        except FailedError as error:
            if self.context_tokens is None or error.is_key or error.problem != "refused":
                raise
            return None

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request beside `model` and `messages`."""
        return {
            self.max_tokens_key: request.max_reply_tokens + self.thinking_tokens,
            **({} if request.temperature is None else {"temperature": request.temperature}),
            **({"seed": request.seed} if request.temperature != 0 else {}),
            **_structured_outputs(request.constraint),
            **self.args,
        }


def _structured_outputs(constraint: Constraint | None) -> dict[str, Any]:
    """The constraint as vLLM's server expects it in a request's body."""
    if constraint is None:
        return {}
    if constraint.choices:
        return {"structured_outputs": {"choice": list(constraint.choices)}}
    return {"structured_outputs": {"regex": constraint.regex}}


@contextmanager
def start_errors(client: OpenAIClient) -> Iterator[None]:
    """Turn a FailedError of the start into a StartError that names the address."""
    try:
        yield
    except FailedError as error:
        words = str(error)
        named = words if words.startswith(client.address) else f"{client.address}: {words}"
        raise StartError(named) from None
