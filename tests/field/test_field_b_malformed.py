"""Field reports, family B: malformed, truncated or badly identified tool calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from agentkit import Limits, create_agent, exit_of
from agentkit.errors import DuplicateTool
from agentkit.middleware import Insist
from agentkit.testing import EntryPoint, RunResult, ScriptedModel, ai, assert_paired, invalid_call, run, tool_call

Maker = Callable[..., Any]


def results(ended: RunResult) -> list[ToolMessage]:
    return [m for m in ended.messages if isinstance(m, ToolMessage)]


def test_lc_33504_an_unreadable_call_goes_back_to_the_model(entry: EntryPoint, add: Any) -> None:
    model = ScriptedModel(ai("", invalid_call("add", id="bad")), "recovered")
    ended = run(create_agent(model, [add.tool]), "hi", entry=entry)
    assert ended.text == "recovered"
    answer = model.requests[1].messages[-1]
    assert isinstance(answer, ToolMessage)
    assert (answer.tool_call_id, answer.status) == ("bad", "error")
    assert "add" in answer.text
    assert add.ran == []
    assert_paired(model, ended.messages)


def test_lc_33504_a_readable_call_beside_it_runs_once(entry: EntryPoint, add: Any) -> None:
    both = ai("", tool_call("add", {"a": 1, "b": 2}, "good"), invalid_call("add", id="bad"))
    model = ScriptedModel(both, "done")
    ended = run(create_agent(model, [add.tool]), "hi", entry=entry)
    assert ended.text == "done"
    assert add.ran == [(1, 2)]
    assert {r.tool_call_id: r.status for r in results(ended)} == {"good": "success", "bad": "error"}
    assert_paired(model, ended.messages)


def test_lc_33504_unreadable_for_ever_ends_gracefully_at_the_limit(entry: EntryPoint, add: Any) -> None:
    model = ScriptedModel(ai("", invalid_call("add")), repeat=True)
    ended = run(create_agent(model, [add.tool], limits=Limits(malformed_answers=3)), "hi", entry=entry)
    assert model.calls == 3
    assert ended.messages[-1].type == "ai" and ended.text
    ending = exit_of(ended.raw)
    assert ending is not None and ending.reason == "failures"
    assert_paired(model, ended.messages)


class Replies(BaseHTTPRequestHandler):
    """A chat-completions server that answers from its server's list."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        server: Any = self.server
        server.asked += 1
        message = {"role": "assistant", "content": None, **server.replies.pop(0)}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        body = json.dumps({"id": "r", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args: Any) -> None:
        """Stay quiet."""


@pytest.fixture
def openai() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Replies)
    server.daemon_threads = True
    server.asked = 0
    worker = threading.Thread(target=server.serve_forever, args=(0.02,))
    worker.start()
    yield server
    server.shutdown()
    worker.join()
    server.server_close()


@pytest.mark.parametrize("arguments", ["[1, 2]", '"x"', "3", "{broken"])
def test_lc_35990_arguments_that_are_no_object_are_unreadable(
    call: EntryPoint, add: Any, openai: Any, arguments: str
) -> None:
    function = {"name": "add", "arguments": arguments}
    openai.replies = [{"tool_calls": [{"id": "c", "type": "function", "function": function}]}, {"content": "recovered"}]
    url = f"http://127.0.0.1:{openai.server_port}/v1"
    model = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("none"), max_retries=0)
    ended = run(create_agent(model, [add.tool]), "hi", entry=call)
    assert ended.text == "recovered"
    assert openai.asked == 2
    assert add.ran == []
    assert_paired(ended.messages)


def chunk(*fragments: Any, text: str = "") -> AIMessageChunk:
    return AIMessageChunk(content=text, tool_call_chunks=list(fragments))


def test_lc_34654_fragments_without_an_index_are_not_run_as_an_empty_call(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    broken = [chunk(tool_call_chunk(name="look", args='{"x":', id="c")), chunk(tool_call_chunk(args="1}"))]
    model = ScriptedModel(broken, "recovered")
    ended = run(create_agent(model, [look.tool]), "hi", entry=entry)
    assert look.ran == []
    assert ended.text == "recovered"
    assert [r.status for r in results(ended)] == ["error"]
    assert_paired(model)


def test_lc_34807_calls_that_share_an_index_stay_two(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    shared = [
        chunk(tool_call_chunk(name="look", args='{"x": 1}', id="id1", index=0)),
        chunk(tool_call_chunk(name="look", args='{"x": 2}', id="id2", index=0)),
    ]
    model = ScriptedModel(shared, "done")
    ended = run(create_agent(model, [look.tool]), "hi", entry=entry)
    assert sorted(look.ran) == [1, 2]
    assert sorted(r.tool_call_id for r in results(ended)) == ["id1", "id2"]
    assert_paired(model, ended.messages)


def separate_chunks(*, indexed: bool) -> list[AIMessageChunk]:
    return [
        chunk(tool_call_chunk(name="look", args=f'{{"x": {i}}}', id=f"id{i}", index=i if indexed else None))
        for i in range(3)
    ]


def stream_v3(agent: Any) -> None:
    with agent.stream_events({"messages": [("user", "hi")]}, version="v3") as events:
        for message in events.messages:
            list(message)


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("mode", ["values", "updates", "messages", "debug"])
def test_lc_40392_calls_in_chunks_of_their_own_all_run(act: Maker, indexed: bool, mode: Any) -> None:
    look = act("look")
    agent = create_agent(ScriptedModel(separate_chunks(indexed=indexed), "done"), [look.tool])
    list(agent.stream({"messages": [("user", "hi")]}, stream_mode=mode))
    assert sorted(look.ran) == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_lc_40392_calls_in_chunks_of_their_own_all_run_in_v3_streaming(act: Maker) -> None:
    look = act("look")
    stream_v3(create_agent(ScriptedModel(separate_chunks(indexed=True), "done"), [look.tool]))
    assert sorted(look.ran) == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_lc_40392_calls_that_v3_streaming_glues_together_go_back_to_the_model(act: Maker) -> None:
    """Without an index LangChain's v3 protocol makes one unreadable call of them, before we see it."""
    look = act("look")
    model = ScriptedModel(separate_chunks(indexed=False), "done")
    stream_v3(create_agent(model, [look.tool]))
    told = model.requests[1].messages[-1]
    assert sorted(look.ran) == [0, 1, 2] or (look.ran == [] and getattr(told, "status", "") == "error")
    assert_paired(model)


SPELLINGS = [("finish_reason", "length"), ("stop_reason", "max_tokens"), ("finishReason", "MAX_TOKENS")]


@pytest.mark.parametrize(("key", "value"), SPELLINGS)
def test_lbr_280_the_last_call_of_a_turn_cut_off_by_its_length_is_not_run(
    entry: EntryPoint, act: Maker, key: str, value: str
) -> None:
    look = act("look")
    cut = ai("", tool_call("look", {"x": 1}, "whole"), tool_call("look", {"x": 2}, "cut"))
    cut.response_metadata = {key: value}
    model = ScriptedModel(cut, "done")
    ended = run(create_agent(model, [look.tool]), "hi", entry=entry)
    assert look.ran == [1]
    told = {r.tool_call_id: r for r in results(ended)}
    assert told["cut"].status == "error"
    assert "truncated" in told["cut"].text or "cut off" in told["cut"].text
    assert_paired(model, ended.messages)


def test_mas_15717_turns_that_are_cut_off_for_ever_end(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    cut = ai("", tool_call("look", {"x": 1}), finish_reason="length")
    model = ScriptedModel(cut, repeat=True)
    ended = run(create_agent(model, [look.tool], limits=Limits(malformed_answers=3)), "hi", entry=entry)
    assert model.calls == 3
    assert look.ran == []
    ending = exit_of(ended.raw)
    assert ending is not None and ending.reason == "failures"
    assert_paired(model, ended.messages)


def test_hrm_1796_unreadable_arguments_are_not_replaced_by_none(entry: EntryPoint, act: Maker) -> None:
    look = act("look")  # its only argument is optional
    ended = run(create_agent(ScriptedModel(ai("", invalid_call("look")), "done"), [look.tool]), "hi", entry=entry)
    assert look.ran == []
    assert ended.text == "done"


def test_lcjs_10145_ids_that_start_anew_each_turn_do_not_hide_calls(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    steps = [ai("", tool_call("look", {"x": x}, "call_0")) for x in (1, 2)]
    model = ScriptedModel(*steps, "done")
    ended = run(create_agent(model, [look.tool]), "hi", entry=entry)
    assert look.ran == [1, 2]
    assert [r.text for r in results(ended)] == ["look 1", "look 2"]
    assert_paired(model, ended.messages)


def test_hrm_70724_one_constant_id_still_runs_every_call(entry: EntryPoint, act: Maker) -> None:
    look = act("look")
    twins = ai("", tool_call("look", {"x": 1}, "call"), tool_call("look", {"x": 2}, "call"))
    model = ScriptedModel(twins, ai("", tool_call("look", {"x": 3}, "call")), "done")
    ended = run(create_agent(model, [look.tool]), "hi", entry=entry)
    assert sorted(look.ran) == [1, 2, 3]
    assert sorted(r.text for r in results(ended)) == ["look 1", "look 2", "look 3"]
    assert_paired(model, ended.messages)
    (first,) = [m for m in ended.messages if isinstance(m, AIMessage) and len(m.tool_calls) == 2]
    answers = {r.tool_call_id: r.text for r in results(ended)[:2]}
    assert [answers[str(c["id"])] for c in first.tool_calls] == ["look 1", "look 2"]


def test_lg_7988_two_tools_of_one_name_are_refused(act: Maker) -> None:
    class act_schema(BaseModel):
        x: int

    act_schema.__name__ = "act"
    first, second = act("act").tool, act("act").tool
    supplies = type("Supplies", (AgentMiddleware,), {"tools": [second]})()
    for options in (
        {"tools": [first, second]},
        {"tools": [first], "middleware": [supplies]},
        {"tools": [first], "response_format": ToolStrategy(act_schema)},
    ):
        with pytest.raises(DuplicateTool, match="'act'"):
            create_agent(ScriptedModel("x"), **options)
    with pytest.raises(DuplicateTool, match="Supplies"):
        create_agent(ScriptedModel("x"), [first], middleware=[supplies])


def test_oai_2204_an_unknown_tool_is_answered_with_the_known_ones(entry: EntryPoint, add: Any) -> None:
    model = ScriptedModel(ai("", tool_call("hex", {"x": 1})), "sorry")
    ended = run(create_agent(model, [add.tool, tool(_plain)]), "hi", entry=entry)
    assert ended.text == "sorry"
    (told,) = results(ended)
    assert told.status == "error"
    assert all(name in told.text for name in ("hex", "add", "_plain"))
    assert_paired(model, ended.messages)


def _plain() -> str:
    """Another tool."""
    return "plain"


def test_lc_37778_a_refused_call_is_sent_again_instead_of_talk(entry: EntryPoint, add: Any) -> None:
    wrong, right = tool_call("add", {"a": 1, "c": 2}, "c1"), tool_call("add", {"a": 1, "b": 2}, "c2")
    model = ScriptedModel(ai("", wrong), '{"a": 1, "b": 2}', ai("", right), "3")
    ended = run(create_agent(model, [add.tool], middleware=[Insist(1)]), "hi", entry=entry)
    assert (ended.text, add.ran) == ("3", [(1, 2)])
    assert [request.tool_choice for request in model.requests] == [None, None, "any", None]
    assert_paired(model, ended.messages)


def test_lc_37778_talk_for_ever_ends_after_so_many_turns(entry: EntryPoint, add: Any) -> None:
    model = ScriptedModel(ai("", tool_call("add", {"a": 1})), "talk", repeat=True)
    ended = run(create_agent(model, [add.tool], middleware=[Insist(2)]), "hi", entry=entry)
    assert model.calls == 4
    assert (ended.text, add.ran) == ("talk", [])
