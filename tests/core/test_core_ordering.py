"""Where wraps sit: list order, unless a middleware asks for a place."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import Middleware, Placement, create_agent
from agentkit.errors import PlacementConflict
from agentkit.testing import ScriptedModel


def wraps(name: str, **place: Any) -> Any:
    """A middleware of that name whose model wrap asks for a place."""

    def wrap_model_call(self: Any, request: Any) -> Any:
        return (yield request.override(messages=[*request.messages, ("user", name)]))

    body = {"wrap_model_call": wrap_model_call, "model_placement": Placement(**place)}
    return type(name, (Middleware,), body)()


def order(*middleware: Any) -> str:
    """The names from the outermost wrap to the innermost, as the request shows them."""
    model = ScriptedModel("done")
    create_agent(model, middleware=middleware).invoke({"messages": "hi"})
    return "".join(m.text for m in model.requests[0].messages[1:])


@pytest.mark.parametrize(
    ("middleware", "expected"),
    [
        ([wraps("a"), wraps("b"), wraps("c")], "abc"),
        ([wraps("a"), wraps("b", at="outermost"), wraps("c")], "bac"),
        ([wraps("a", at="innermost"), wraps("b"), wraps("c")], "bca"),
        ([wraps("a", at="innermost"), wraps("b"), wraps("c", at="outermost")], "cba"),
        ([wraps("a"), wraps("b"), wraps("c", outside=("a",))], "bca"),
        ([wraps("a", inside=("c",)), wraps("b"), wraps("c")], "bca"),
        ([wraps("a", inside=("elsewhere",)), wraps("b")], "ab"),
        ([wraps("a", inside=("b",)), wraps("b", inside=("c",)), wraps("c")], "cba"),
        ([wraps("a", inside=("a",)), wraps("a"), wraps("b")], "aab"),
    ],
)
def test_arranged(middleware: list[Any], expected: str) -> None:
    assert order(*middleware) == expected


@pytest.mark.parametrize(
    ("middleware", "told"),
    [
        ([wraps("a", at="outermost"), wraps("b", at="outermost")], "a and b .* all ask to be outermost"),
        ([wraps("a", at="innermost"), wraps("b"), wraps("c", at="innermost")], "a and c .* all ask to be innermost"),
        ([wraps("a", inside=("b",)), wraps("b", inside=("a",))], "a and b .* inside another"),
        ([wraps("a", outside=("b",)), wraps("b", at="outermost")], "model wraps of a and b"),
        ([wraps("a", at="outermost", inside=("b",)), wraps("b")], "a and b"),
    ],
)
def test_a_conflict_names_both_sides(middleware: list[Any], told: str) -> None:
    with pytest.raises(PlacementConflict, match=told):
        create_agent(ScriptedModel("done"), middleware=middleware)


def test_a_conflict_does_not_name_who_has_no_part_in_it() -> None:
    middleware = [wraps("a", inside=("b",)), wraps("b", inside=("a",)), wraps("innocent", inside=("b",))]
    with pytest.raises(PlacementConflict) as caught:
        create_agent(ScriptedModel("done"), middleware=middleware)
    assert set(caught.value.names) == {"a", "b"}


def test_tool_wraps_have_a_place_of_their_own() -> None:
    """A middleware may sit outermost around tools and innermost around the model."""
    seen: list[str] = []

    def made(name: str, **places: Any) -> Any:
        def wrap_tool_call(self: Any, request: Any) -> Any:
            seen.append(name)
            return (yield request)

        return type(name, (Middleware,), {"wrap_tool_call": wrap_tool_call, **places})()

    from langchain.tools import tool

    from agentkit.testing import ai, tool_call

    @tool
    def look(x: int) -> str:
        """Look."""
        return "found"

    middleware = [
        made("a"),
        made("b", tool_placement=Placement(at="outermost"), model_placement=Placement(at="innermost")),
    ]
    model = ScriptedModel(ai("", tool_call("look", {"x": 1})), "done")
    create_agent(model, [look], middleware=middleware).invoke({"messages": "hi"})
    assert seen == ["b", "a"]
