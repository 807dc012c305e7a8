"""Answers as OpenAI's chat completions and responses write them: whole, and as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

__all__ = ["Answer", "Api", "Call", "FaultKind", "Json", "Refusal", "body_of", "events_of", "finish_event"]

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


def body_of(answer: Answer, api: Api) -> Json:
    """The whole answer, as it is sent when no stream was asked for."""
    if api == "chat":
        return _completion(answer)
    return _response(answer, "completed", _response_items(answer))


def _completion(answer: Answer) -> Json:
    message: Json = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = _wire_calls(answer)
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
    usage: Json = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
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
