"""Hypothesis strategies for scenarios."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.property.stacks import ModelPart, NodePart, Reply, Stack, ToolPart, WildReply

__all__ = ["alike_stacks", "calm_stacks", "wild_stacks"]

_PHASES = ("before_agent", "before_model", "after_model", "after_agent")
_NODE_ACTS = ("quiet", "note", "write", "say", "remove", "clear", "jump", "crash", "ask")
_MODEL_ACTS = ("pass", "retry", "short", "twice", "edit", "inplace", "command", "reword", "toolless", "answer", "catch")
_TOOL_ACTS = ("pass", "retry", "short", "args", "command", "catch")
_STYLES = st.sampled_from(["plain", "generator"])
_AT = st.integers(0, 2)


@st.composite
def _node_parts(draw: Any, phase: str, *, alike: bool) -> NodePart:
    act = draw(st.sampled_from(_NODE_ACTS))
    if act != "jump":
        return NodePart(phase, act, draw(_AT), forms=draw(st.sampled_from(["sync", "both"])))  # type: ignore[arg-type]
    # From after_agent LangChain runs the chain again on "end"; agentkit finishes it.
    targets = ["model"] if alike and phase == "after_agent" else ["model", "tools", "end"]
    jump = draw(st.sampled_from(targets))
    declared = (jump,) if alike or draw(st.booleans()) else ()
    return NodePart(phase, "jump", draw(_AT), jump, declared)  # type: ignore[arg-type]


@st.composite
def _middlewares(draw: Any, *, alike: bool) -> tuple[Any, ...]:
    parts: list[Any] = []
    for phase in draw(st.sets(st.sampled_from(_PHASES), min_size=1, max_size=3)):
        parts.append(draw(_node_parts(phase, alike=alike)))
    if draw(st.booleans()):
        parts.append(ModelPart(draw(st.sampled_from(_MODEL_ACTS)), draw(_AT), draw(_STYLES)))
    if draw(st.booleans()):
        parts.append(ToolPart(draw(st.sampled_from(_TOOL_ACTS)), draw(_AT), draw(_STYLES)))
    return tuple(parts)


_CALL = st.tuples(st.sampled_from(["ok", "note", "direct", "ask"]), st.integers(0, 9))
# A failure stops its siblings at an unforeseeable moment, so a call that fails comes alone.
_CALLS = st.one_of(st.lists(_CALL, min_size=1, max_size=3).map(tuple), st.integers(0, 9).map(lambda x: (("crash", x),)))
_WILD_CALLS = st.lists(
    st.tuples(st.sampled_from(["ok", "note", "direct", "ask", "refuse"]), st.integers(0, 9)), min_size=1, max_size=3
).map(tuple)
_WILD_KINDS = (
    "text", "empty", "calls", "calls", "fails", "invalid", "unknown", "bad_args", "same_ids", "nameless", "no_id",
    "at_length", "mixed", "old_id", "block_only",
)  # fmt: skip


def _calls(calls: Any) -> Reply:
    return Reply(calls)


def _both(both: Any) -> Reply:
    return Reply(*both)


def _replies(structured: bool, tools: bool) -> st.SearchStrategy[Any]:
    kinds: list[Any] = [st.just(Reply(fails=True))]
    if structured:
        # A plain text is no answer where a structured one is required: agentkit asks again, LangChain returns none.
        kinds.append(st.integers(0, 5).map(lambda value: Reply(structured=value)))
        if tools:
            kinds.append(st.tuples(_CALLS, st.none() | st.integers(0, 5)).map(_both))
    else:
        kinds.append(st.just(Reply()))
        if tools:
            kinds += [_CALLS.map(_calls)] * 3
    return st.one_of(kinds)


def _is_alike(stack: Stack) -> bool:
    """Leaves out two things that LangChain does in agents without tools.

    There it cannot compile a jump to the tools, and asks for a structured answer until there is one, whatever wraps and
    hooks say.
    """
    if stack.tools:
        return True
    deviate = {"short", "catch", "remove", "clear"} if stack.structured else set()
    return not any(part.act in deviate or getattr(part, "jump", None) == "tools" for part in stack.parts())


@st.composite
def _alike_stacks(draw: Any) -> Stack:
    structured, tools = draw(st.sampled_from([False, False, True])), draw(st.sampled_from([True, True, True, False]))
    return Stack(
        middleware=tuple(draw(st.lists(_middlewares(alike=True), min_size=1, max_size=3))),
        script=tuple(draw(st.lists(_replies(structured, tools), min_size=1, max_size=5))),
        tools=tools,
        structured=structured,
        name=draw(st.sampled_from([None, "bot"])),
        turns=draw(st.sampled_from([1, 1, 2])),
        streams=draw(st.booleans()),
    )


def alike_stacks() -> st.SearchStrategy[Stack]:
    """Scenarios that LangChain and agentkit define alike: declared jumps, well-formed calls."""
    return _alike_stacks().filter(_is_alike)


def calm_stacks() -> st.SearchStrategy[Stack]:
    """Of these, scenarios in which no hook, model or tool fails or pauses, so that each runs to its end."""
    return alike_stacks().map(_calmed)


def _calmed(stack: Stack) -> Stack:
    def calm(part: Any) -> Any:
        return replace(part, act="note") if isinstance(part, NodePart) and part.act in ("crash", "ask") else part

    script: list[Any] = [reply for reply in stack.script if not reply.fails]  # type: ignore[union-attr]
    for i, reply in enumerate(script):
        script[i] = replace(reply, calls=tuple(("ok" if t in ("crash", "ask") else t, x) for t, x in reply.calls))
    return replace(
        stack, middleware=tuple(tuple(calm(part) for part in parts) for parts in stack.middleware), script=tuple(script)
    )


@st.composite
def wild_stacks(draw: Any, *, structured: bool | None = None) -> Stack:
    """Scenarios with malformed answers, undeclared jumps and refusing tools."""
    if structured is None:
        structured = draw(st.sampled_from([False, False, True]))
    kinds = [*_WILD_KINDS, *(["structured"] * 4 if structured else [])]
    reply = st.builds(WildReply, st.sampled_from(kinds), _WILD_CALLS)
    return Stack(
        middleware=tuple(draw(st.lists(_middlewares(alike=False), min_size=1, max_size=3))),
        script=tuple(draw(st.lists(reply, min_size=1, max_size=5))),
        tools=draw(st.sampled_from([True, True, True, False])),
        structured=structured,
        turns=draw(st.sampled_from([1, 1, 2])),
    )
