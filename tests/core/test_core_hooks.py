"""The table of hooks: which ones a middleware has, under which name, with which jumps, in which forms."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, after_model, before_model, hook_config, wrap_tool_call

from agentkit import Middleware
from agentkit.errors import DuplicateMiddleware, MissingHookForm
from agentkit.hooks import table


class Plain(AgentMiddleware[Any, Any, Any]):
    pass


class Every(AgentMiddleware[Any, Any, Any]):
    def before_agent(self, state: Any, runtime: Any) -> None: ...
    def before_model(self, state: Any, runtime: Any) -> None: ...
    def after_model(self, state: Any, runtime: Any) -> None: ...
    def after_agent(self, state: Any, runtime: Any) -> None: ...
    def wrap_model_call(self, request: Any, handler: Any) -> Any: ...
    def wrap_tool_call(self, request: Any, handler: Any) -> Any: ...


class Async(AgentMiddleware[Any, Any, Any]):
    async def abefore_model(self, state: Any, runtime: Any) -> None: ...
    async def awrap_model_call(self, request: Any, handler: Any) -> Any: ...


class Child(Every):
    pass


PHASES = ["before_agent", "before_model", "after_model", "after_agent", "wrap_model_call", "wrap_tool_call"]


@pytest.mark.parametrize(
    ("middleware", "phases"),
    [
        (Plain(), []),
        (Every(), PHASES),
        (Child(), PHASES),
        (Async(), ["before_model", "wrap_model_call"]),
        (Middleware(), []),
    ],
)
def test_a_hook_is_there_if_one_form_is_written(middleware: Any, phases: list[str]) -> None:
    assert [hook.phase for hook in table([middleware]).hooks] == phases


def test_a_hook_set_on_the_object_counts() -> None:
    one = Plain()
    one.before_model = lambda state, runtime: {"messages": []}  # type: ignore[method-assign]
    (hook,) = table([one]).hooks
    assert hook.sync({}, runtime=None) == {"messages": []}


def test_hooks_of_a_phase_keep_list_order() -> None:
    @before_model(name="first")
    def one(state: Any, runtime: Any) -> None: ...

    @before_model(name="second")
    def two(state: Any, runtime: Any) -> None: ...

    assert [hook.node for hook in table([one, two]).of("before_model")] == ["first.before_model", "second.before_model"]


def test_several_instances_of_a_class_are_numbered() -> None:
    assert table([Every(), Every(), Plain(), Every()]).names == ("Every", "Every#2", "Plain", "Every#3")


def test_a_number_that_is_taken_is_skipped() -> None:
    class Named(Plain):
        name = "Every#2"

    names = table([Named(), Every(), Every()]).names
    assert names == ("Every#2", "Every", "Every#3")


def test_the_same_object_twice_is_refused_by_name() -> None:
    one = Every()
    with pytest.raises(DuplicateMiddleware, match="same Every object") as caught:
        table([one, Plain(), one])
    assert caught.value.name == "Every"


def test_jumps_are_declared_on_either_form() -> None:
    class Jumper(AgentMiddleware[Any, Any, Any]):
        @hook_config(can_jump_to=["end"])
        def before_model(self, state: Any, runtime: Any) -> None: ...

        @hook_config(can_jump_to=["model"])
        async def abefore_model(self, state: Any, runtime: Any) -> None: ...

    (hook,) = table([Jumper()]).hooks
    assert set(hook.jumps) == {"end", "model"}


def test_decorators_declare_jumps() -> None:
    @after_model(can_jump_to=["end"])
    def stop(state: Any, runtime: Any) -> None: ...

    (hook,) = table([stop]).hooks
    assert (hook.node, hook.jumps) == ("stop.after_model", ("end",))


def test_a_node_hook_with_only_a_sync_form_needs_no_other() -> None:
    (hook,) = table([before_model(lambda state, runtime: None)]).hooks
    assert hook.asynchronous is None


@pytest.mark.parametrize("phase", ["before_model", "wrap_model_call"])
def test_a_missing_sync_form_is_told_when_it_is_needed(phase: Any) -> None:
    (hook,) = table([Async()]).of(phase)
    with pytest.raises(MissingHookForm, match=rf"Async\.{phase} is not written, and invoke/stream needs it") as caught:
        hook.sync(None, None)
    assert (caught.value.middleware, caught.value.hook) == ("Async", phase)
    assert isinstance(caught.value, NotImplementedError | TypeError)


async def test_a_missing_async_wrap_is_told_when_it_is_needed() -> None:
    @wrap_tool_call
    def only_sync(request: Any, handler: Any) -> Any: ...

    (hook,) = [h for h in table([only_sync]).hooks if h.phase == "wrap_tool_call"]
    assert hook.asynchronous is not None
    with pytest.raises(NotImplementedError, match="awrap_tool_call"):
        await hook.asynchronous(None, None)


def test_a_generator_wrap_has_both_forms() -> None:
    class Policy(Middleware):
        def wrap_model_call(self, request: Any) -> Any:
            return (yield request)

    (hook,) = table([Policy()]).hooks
    assert hook.sync("r", lambda r: f"got {r}") == "got r"
    assert hook.asynchronous is not None


def test_only_what_a_hook_asks_for_by_name_is_injected() -> None:
    class Picky(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any) -> None: ...  # type: ignore[override]
        def before_model(self, state: Any, runtime: Any) -> None: ...
        def after_model(self, state: Any, config: Any, store: Any, writer: Any) -> None: ...  # type: ignore[override]

    assert {hook.phase: set(hook.injected) for hook in table([Picky()]).hooks} == {
        "before_agent": set(),
        "before_model": {"runtime"},
        "after_model": {"config", "store", "writer"},
    }
