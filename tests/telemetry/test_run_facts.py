"""What a run's span tells of the agent before any request: how it was started, and its model if there is just one."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from langchain.agents import create_agent as langchain_create_agent
from langchain.agents.middleware import (
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    SummarizationMiddleware,
    wrap_model_call,
)
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from agentkit import Middleware
from agentkit.middleware import ModelRetry, RunLog
from agentkit.telemetry import instrument
from agentkit.telemetry.endpoint import endpoint
from agentkit.testing import EntryPoint, ScriptedModel, run


def named(name: str, *steps: Any) -> ScriptedModel:
    return ScriptedModel(*(steps or ("done",)), metadata={"ls_model_name": name})


def test_the_entry_point_is_told(recorder: Any, entry: EntryPoint, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "agentkit")
    run(recorder.create(named("m"), middleware=[RunLog()]), "hi", entry=entry)
    assert recorder.named("invoke_agent")[0].attributes["agentkit.entrypoint"] == entry
    (started,) = [record for record in caplog.records if record.getMessage() == "agent.run.started"]
    assert vars(started)["entrypoint"] == entry


def test_of_a_graph_of_somebody_elses_it_is_not(recorder: Any) -> None:
    tracing = recorder.tracing()
    theirs: Any = langchain_create_agent(named("m"), [], middleware=[tracing])
    run(instrument(theirs, tracing), "hi")
    (span,) = recorder.named("invoke_agent")
    assert not {"agentkit.entrypoint", "gen_ai.request.model"} & span.attributes.keys()


class Other(Middleware):
    """Asks whatever model it likes."""

    def wrap_model_call(self, request: Any) -> Any:
        return (yield request.override(model=named("other")))


@wrap_model_call
def by_length(request: Any, handler: Any) -> Any:
    return handler(request)


@pytest.mark.parametrize(
    ("middleware", "told"),
    [
        ([], "m"),
        ([ModelRetry(), ModelCallLimitMiddleware(run_limit=5)], "m"),
        ([ModelRetry(fallbacks=[named("other")])], None),
        ([ModelFallbackMiddleware(named("other"))], None),
        ([SummarizationMiddleware(named("other"))], None),
        ([Other()], None),
        ([by_length], None),
    ],
    ids=["none", "shipped", "fallback", "theirs", "a second model", "own", "decorated"],
)
def test_the_model_is_named_where_there_is_just_one(recorder: Any, middleware: Any, told: str | None) -> None:
    recorder.create(named("m"), middleware=middleware).invoke({"messages": "hi"})
    (span,) = recorder.named("invoke_agent")
    assert span.attributes.get("gen_ai.request.model") == told
    (point,) = recorder.points("gen_ai.invoke_agent.duration")
    assert point.attributes.get("gen_ai.request.model") == told
    assert recorder.findings() == []


def test_a_model_without_a_name_is_not_named(recorder: Any) -> None:
    recorder.create(ScriptedModel("done")).invoke({"messages": "hi"})
    assert "gen_ai.request.model" not in recorder.named("invoke_agent")[0].attributes


def test_what_a_request_asks_for_is_told(recorder: Any) -> None:
    asked = {"top_k": 5, "n": 2, "reasoning_effort": "high", "previous_response_id": "r-0", "temperature": 1}

    class Settings(Middleware):
        def wrap_model_call(self, request: Any) -> Any:
            return (yield request.override(model_settings=asked))

    run(recorder.create(named("m"), middleware=[Settings()]), "hi")
    told = recorder.named("chat")[0].attributes
    assert (told["gen_ai.request.top_k"], told["gen_ai.request.choice.count"]) == (5, 2)
    assert (told["gen_ai.request.reasoning.level"], told["gen_ai.request.previous_response.id"]) == ("high", "r-0")
    asked["n"] = 1
    run(recorder.create(named("m"), middleware=[Settings()]), "hi")
    assert "gen_ai.request.choice.count" not in recorder.named("chat")[1].attributes
    assert recorder.findings() == []


# ---- where requests go


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = (
            b'{"id": "r-1", "object": "chat.completion", "created": 1, "model": "gpt-x-1", "choices": [{"index": 0, '
            b'"finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}]}'
        )
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def test_the_server_is_told_of_a_real_clients_requests(recorder: Any) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        model: Any = ChatOpenAI(model="gpt-x", api_key="k", base_url=f"http://127.0.0.1:{server.server_port}/v1")  # type: ignore[arg-type]
        assert run(recorder.create(model, name="a"), "hi").text == "hello"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    (span,) = recorder.named("chat")
    at = {"server.address": "127.0.0.1", "server.port": server.server_port}
    assert {key: span.attributes[key] for key in at} == at
    assert at.keys() <= recorder.checker.started[span.get_span_context().span_id]  # a sampler sees it
    (point,) = recorder.points("gen_ai.client.operation.duration")
    assert {key: point.attributes[key] for key in at} == at
    assert recorder.named("invoke_agent")[0].attributes["gen_ai.request.model"] == "gpt-x"
    assert recorder.findings() == []


def test_a_client_tells_its_providers_default() -> None:
    key: Any = "k"
    assert endpoint(ChatOpenAI(model="gpt-x", api_key=key)) == ("api.openai.com", 443)
    azure = AzureChatOpenAI(
        azure_deployment="d", azure_endpoint="https://tenant.openai.azure.com", api_version="1", api_key=key
    )
    assert endpoint(azure) == ("tenant.openai.azure.com", 443)


def test_who_does_not_say_is_not_guessed(recorder: Any) -> None:
    assert endpoint(ScriptedModel("x")) is None
    assert endpoint(object()) is None
    run(recorder.create(named("gpt-x")), "hi")
    assert "server.address" not in recorder.named("chat")[0].attributes
