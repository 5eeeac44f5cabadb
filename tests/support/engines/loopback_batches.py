"""A loopback server with /v1/files and /v1/batches, whose replies to lines are those to chats.

A batch is as far as it is looked at: it ends at look number `looks`, once `is_held` is false.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.engines.loopback_server import Answer, LoopbackServer, completion

Json = dict[str, Any]


@dataclass(kw_only=True)
class BatchServer(LoopbackServer):
    """`refusals` are the responses to the first requests that create a batch; `statuses` those in
    which the first batches end, the rest complete; `is_reached` says which lines a batch that does
    not complete has got to. `is_cut_off`: a batch is created, and the connection dropped.
    """

    looks: int = 1
    is_held: bool = False
    is_cut_off: bool = False
    is_silent: bool = False  # once it has created a batch
    look_status: int = 200
    can_list: bool = True
    refusals: list[Answer] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    why: str = ""  # of a failed batch
    is_reached: Callable[[Json], bool] = lambda body: False
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Json] = field(default_factory=dict)
    num_looks: int = 0
    asked_lines: int = 0  # a count for tests to keep

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/files", self._upload)
        router.add_get("/v1/files/{file}/content", self._content)
        router.add_post("/v1/batches", self._create)
        router.add_get("/v1/batches", self._list)
        router.add_get("/v1/batches/{batch}", self._look)

    def waves(self) -> list[list[str]]:
        """The last message of every line, by batch."""
        files = [self.files[batch["input_file_id"]] for batch in self.batches.values()]
        return [[line["body"]["messages"][-1]["content"] for line in _lines(file)]
                for file in files]  # fmt: skip

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        sent: Any = form["file"]
        return web.json_response({"id": self._add(sent.file.read()), "object": "file"})

    def _add(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["file"]])

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        if self.refusals:
            answer = self.refusals.pop(0)
            return web.json_response(json.loads(answer.body or "{}"), status=answer.status)
        made = {
            "id": f"batch-{len(self.batches)}", "object": "batch", "status": "validating",
            "input_file_id": body["input_file_id"], "looks": 0,
        }  # fmt: skip
        self.batches[made["id"]] = made
        if self.is_silent:
            await asyncio.sleep(60)
        if self.is_cut_off:
            self.is_cut_off = False
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(made)

    async def _list(self, request: web.Request) -> web.Response:
        if not self.can_list:
            return web.json_response({"error": {"message": "no such page"}}, status=404)
        return web.json_response({"object": "list", "data": [*self.batches.values()]})

    async def _look(self, request: web.Request) -> web.Response:
        self.num_looks += 1
        if self.look_status != 200:
            return web.json_response({}, status=self.look_status)
        batch = self.batches.get(request.match_info["batch"])
        if batch is None:
            return web.json_response({"error": {"message": "no such batch"}}, status=404)
        batch["looks"] += 1
        if "output_file_id" not in batch:
            batch["status"] = "in_progress"
        if batch["status"] == "in_progress" and batch["looks"] >= self.looks and not self.is_held:
            self._end(batch)
        return web.json_response(batch)

    def _end(self, batch: Json) -> None:
        batch["status"] = self.statuses.pop(0) if self.statuses else "completed"
        if batch["status"] == "failed":
            error = {"code": "invalid", "message": self.why, "line": 1}
            batch["errors"] = {"object": "list", "data": [error]}
            batch["output_file_id"] = None
            return
        done = [self._done(line, batch["status"]) for line in _lines(self._input(batch))]
        good = [
            line for line in done if line["response"] and line["response"]["status_code"] == 200
        ]
        bad = [line for line in done if line not in good]
        batch["request_counts"] = {"completed": len(good), "failed": len(bad), "total": len(done)}
        for key, lines in (("output_file_id", good), ("error_file_id", bad)):
            content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
            batch[key] = self._add(content) if lines else None

    def _input(self, batch: Json) -> bytes:
        return self.files[batch["input_file_id"]]

    def _done(self, line: Json, status: str) -> Json:
        """A line of the output or error file."""
        made = {"id": "batch_req", "custom_id": line["custom_id"], "response": None, "error": None}
        if status != "completed" and not self.is_reached(line["body"]):
            return {**made, "error": {"code": f"batch_{status}", "message": "not executed"}}
        answer = self.answer(line["body"])
        if answer.hang_up:
            return {**made, "error": {"code": "server_error", "message": "it broke"}}
        own = completion(line["body"], answer)
        body = own if answer.body is None else json.loads(answer.body)
        return {**made, "response": {"status_code": answer.status, "body": body}}


def _lines(file: bytes) -> list[Json]:
    return [json.loads(line) for line in file.splitlines()]
