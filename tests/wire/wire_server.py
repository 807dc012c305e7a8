"""A local server that speaks OpenAI's chat completions and responses, and breaks them at an exact event.

`llmock` covers the ordinary faults. This one is for what it cannot say: arguments that are no object, two calls
whose fragments are cut apart, and a stream that ends after any chosen event, or in the middle of one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.wire.strict import refusals

__all__ = ["Answer", "Api", "Call", "Exchange", "FaultKind", "Refusal", "WireServer", "events_of", "finish_event"]

Json = dict[str, Any]
FaultKind = Literal["cut", "drop", "half", "stall", "corrupt"]
Api = Literal["chat", "responses"]


@dataclass(frozen=True)
class Call:
    """A tool call as the provider writes it: the arguments are text, of whatever quality."""

    name: str
    arguments: str
    id: str = "call_1"

    def pieces(self, size: int = 9) -> list[str]:
        """The arguments in the fragments in which they are streamed."""
        return [self.arguments[at : at + size] for at in range(0, len(self.arguments), size)]


@dataclass(frozen=True)
class Answer:
    """What the model says next, and where its stream breaks.

    `fault` and `after` (events already sent): `cut` ends the response cleanly, `drop` closes the socket, `half`
    sends half an event and closes, `stall` goes silent, `corrupt` garbles one event and goes on.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: tuple[int, int] = (11, 7)
    fault: FaultKind | None = None
    after: int = 0
    id: str = "answer_0"

    @property
    def finish_reason(self) -> str:
        """The given finish reason, or the one a provider would send."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def broken(self, fault: FaultKind, after: int) -> Answer:
        """The same answer, its stream broken after so many events."""
        return replace(self, fault=fault, after=after)


@dataclass(frozen=True)
class Refusal:
    """An HTTP error instead of an answer."""

    status: int
    retry_after: float | None = None
    message: str = "refused by the script"


def _wire_calls(answer: Answer) -> list[Json]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.calls
    ]


def _usage(answer: Answer) -> Json:
    prompt, completion = answer.usage
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _completion(answer: Answer) -> Json:
    message = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = _wire_calls(answer)  # type: ignore[assignment]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    head = {"id": answer.id, "object": "chat.completion", "created": 1, "model": "gpt-wire"}
    return head | {"choices": [choice], "usage": _usage(answer)}


def _deltas(answer: Answer) -> Iterator[Json]:
    yield {"role": "assistant", "content": "" if answer.text else None}
    words = answer.text.split(" ")
    for position, word in enumerate(words if answer.text else []):
        yield {"content": word if position == 0 else f" {word}"}
    for index, call in enumerate(answer.calls):
        head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [head]}
        for piece in call.pieces():
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chat_events(answer: Answer, *, usage: bool) -> list[str]:
    head = {"id": answer.id, "object": "chat.completion.chunk", "created": 1, "model": "gpt-wire"}

    def chunk(choices: list[Json], usage: Json | None = None) -> str:
        return f"data: {json.dumps(head | {'choices': choices, 'usage': usage})}\n\n"

    body = [chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in _deltas(answer)]
    last = chunk([{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}])
    tail = [chunk([], _usage(answer))] if usage else []
    return [*body, last, *tail, "data: [DONE]\n\n"]


def _response(answer: Answer, status: str, output: list[Json]) -> Json:
    prompt, completion = answer.usage
    usage = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": answer.id, "object": "response", "created_at": 1, "model": "gpt-wire", "error": None, "metadata": {}}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "incomplete_details": None}
    return head | {"status": status, "output": output, "usage": usage if status == "completed" else None}


def _response_items(answer: Answer) -> list[Json]:
    items: list[Json] = []
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        items.append(
            {
                "type": "message",
                "id": f"msg_{answer.id}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    for index, call in enumerate(answer.calls):
        items.append(
            {"type": "function_call", "id": f"fc_{index}_{answer.id}", "call_id": call.id, "name": call.name}
            | {"arguments": call.arguments, "status": "completed"}
        )
    return items


def _item_events(index: int, item: Json) -> Iterator[Json]:
    where = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "message":
        yield {"type": "response.output_item.added", "output_index": index, "item": item | {"content": []}}
        text, part = item["content"][0]["text"], {"type": "output_text", "text": "", "annotations": []}
        yield {"type": "response.content_part.added", **where, "content_index": 0, "part": part}
        for position, word in enumerate(text.split(" ")):
            delta = word if position == 0 else f" {word}"
            yield {"type": "response.output_text.delta", **where, "content_index": 0, "delta": delta, "logprobs": []}
        yield {"type": "response.output_text.done", **where, "content_index": 0, "text": text, "logprobs": []}
    else:
        yield {"type": "response.output_item.added", "output_index": index, "item": item | {"arguments": ""}}
        for piece in Call(item["name"], item["arguments"]).pieces():
            yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **where, **done}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _response_events(answer: Answer) -> list[str]:
    items = _response_items(answer)
    events: list[Json] = [{"type": "response.created", "response": _response(answer, "in_progress", [])}]
    for index, item in enumerate(items):
        events += _item_events(index, item)
    events.append({"type": "response.completed", "response": _response(answer, "completed", items)})
    return [
        f"event: {event['type']}\ndata: {json.dumps(event | {'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    ]


def events_of(answer: Answer, api: Api = "chat", *, usage: bool = True) -> list[str]:
    """The server-sent events of a whole answer; a cut after `n` sends the first `n` of them."""
    return _chat_events(answer, usage=usage) if api == "chat" else _response_events(answer)


def finish_event(answer: Answer, api: Api = "chat") -> int:
    """How many events must arrive for the answer to be known complete."""
    marker = '"finish_reason": "' if api == "chat" else "event: response.completed"
    return next(number for number, event in enumerate(events_of(answer, api), 1) if marker in event)


@dataclass
class Exchange:
    """One request: its path, its body, and what it got."""

    path: str
    body: Json
    reply: Answer | Refusal

    @property
    def messages(self) -> list[Json]:
        """The messages of a chat completions request."""
        return list(self.body["messages"])

    @property
    def spoken(self) -> list[Json]:
        """The messages, or the input items of a responses request."""
        return list(self.body["messages"] if "messages" in self.body else self.body["input"])


@dataclass
class WireServer:
    """Answers requests from a script, in order, and refuses what a strict provider would refuse.

    A malformed request gets an HTTP 400 and is noted in `refused`; an unscripted one an HTTP 418.
    """

    script: list[Answer | Refusal] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        """What `ChatOpenAI(base_url=...)` takes."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def plays(self, *replies: Answer | Refusal) -> WireServer:
        """Start anew with this script."""
        self._released.set()
        self._released = threading.Event()
        with self._lock:
            self.script, self.exchanges, self.refused = list(replies), [], []
        return self

    def close(self) -> None:
        """Let stalled answers go and stop."""
        self._released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def take(self, path: str, body: Json) -> Answer | Refusal:
        """The next reply of the script, recorded with its request."""
        reasons = refusals(body)
        with self._lock:
            self.refused += reasons
            if reasons:
                reply: Answer | Refusal = Refusal(400, message="; ".join(reasons))
            else:
                reply = self.script.pop(0) if self.script else Refusal(418, message="the script is used up")
            if isinstance(reply, Answer):  # LangChain takes the provider's id as the message's
                reply = replace(reply, id=f"answer_{len(self.exchanges)}")
            self.exchanges.append(Exchange(path, body, reply))
            return reply

    def stall(self) -> None:
        """Wait until the test is over."""
        self._released.wait(30)


def _handler(server: WireServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

        def handle(self) -> None:
            """Serve; a client that gave up on a stalled answer leaves a closed socket behind."""
            with suppress(ConnectionError):
                super().handle()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = server.take(self.path, body)
            if isinstance(reply, Refusal):
                self._refuse(reply)
            elif body.get("stream"):
                self._stream(reply, bool(body.get("stream_options", {}).get("include_usage")))
            elif reply.fault is None:
                whole = _completion(reply)
                if "responses" in self.path:
                    whole = _response(reply, "completed", _response_items(reply))
                self._json(200, whole)
            else:  # without a stream there is only silence, or a connection that closes before the answer
                if reply.fault == "stall":
                    server.stall()
                self.close_connection = True

        def _refuse(self, refusal: Refusal) -> None:
            error = {"message": refusal.message, "type": "error", "param": None, "code": None}
            self._json(refusal.status, {"error": error}, refusal.retry_after)

        def _json(self, status: int, body: Json, retry_after: float | None = None) -> None:
            payload = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            if retry_after is not None:
                self.send_header("Retry-After", str(retry_after))
            self.end_headers()
            self.wfile.write(payload)

        def _stream(self, answer: Answer, usage: bool) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            events = events_of(answer, "responses" if "responses" in self.path else "chat", usage=usage)
            for number, event in enumerate(events):
                if answer.fault is not None and number == answer.after and not self._break(answer.fault, event):
                    return
                if answer.fault != "corrupt" or number != answer.after:
                    self._chunk(event)
            self._end()

        def _break(self, fault: FaultKind, event: str) -> bool:
            """Break the stream here; whether it goes on."""
            if fault == "corrupt":
                self._chunk(event[: len(event) // 2] + "\n\n")
                return True
            if fault == "stall":
                server.stall()
            if fault == "half":
                self._chunk(event[: len(event) // 2])
            if fault in ("cut", "half"):
                self._end()  # the connection stays open: closing it would race with the client's next request
            else:
                self.close_connection = True
            return False

        def _chunk(self, text: str) -> None:
            data = text.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

        def _end(self) -> None:
            self.wfile.write(b"0\r\n\r\n")

    return Handler
