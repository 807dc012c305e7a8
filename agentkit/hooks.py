"""The table of hooks: one row per middleware and hook, made once when an agent is built.

This is the only place that asks whether a middleware has a hook.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from langchain.agents.middleware import AgentMiddleware

from agentkit.errors import ConfigurationError, DuplicateMiddleware, InvalidHook, MissingHookForm
from agentkit.middleware_base import HookWatch

__all__ = ["NODE_PHASES", "Hook", "Table", "table", "watched"]

AnyMiddleware: TypeAlias = AgentMiddleware[Any, Any, Any]
Phase = Literal["before_agent", "before_model", "after_model", "after_agent", "wrap_model_call", "wrap_tool_call"]

NODE_PHASES: Final[tuple[Phase, ...]] = ("before_agent", "before_model", "after_model", "after_agent")
_PHASES: Final[tuple[Phase, ...]] = (*NODE_PHASES, "wrap_model_call", "wrap_tool_call")
_JUMPS: Final = ("model", "tools", "end")
_INJECTED: Final = frozenset({"runtime", "config", "store", "writer"})


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook of one middleware."""

    middleware: AnyMiddleware
    name: str
    """The middleware's name, unique in the agent (`NAME`, `NAME#2`, ...)."""
    phase: Phase
    sync: Callable[..., Any]
    """The sync form; raises `MissingHookForm` when called, if there is none."""
    asynchronous: Callable[..., Any] | None
    """The async form; None for node hooks without one, which run their sync form."""
    jumps: tuple[str, ...] = ()
    """The `jump_to` values the hook declared."""
    injected: tuple[str, ...] = ()
    """Which of runtime, config, store and writer a node hook takes by name."""

    @property
    def node(self) -> str:
        """The name of the hook's node and of its traced run."""
        return f"{self.name}.{self.phase}"


@dataclass(frozen=True, slots=True)
class Table:
    """All hooks of an agent's middlewares, in list order."""

    middleware: tuple[AnyMiddleware, ...]
    names: tuple[str, ...]
    hooks: tuple[Hook, ...]

    def of(self, phase: Phase) -> tuple[Hook, ...]:
        """The hooks of one phase, in list order."""
        return tuple(hook for hook in self.hooks if hook.phase == phase)


def table(middleware: Sequence[AnyMiddleware]) -> Table:
    """Look once at each middleware and write down its hooks.

    Raises:
        ConfigurationError: If one is no middleware, the same object stands twice, or a hook cannot work as written.
    """
    names = _unique_names(middleware)
    middleware = [_renamed(one, name) for one, name in zip(middleware, names, strict=True)]
    rows = [
        row
        for one, name in zip(middleware, names, strict=True)
        for phase in _PHASES
        if (row := _row(one, name, phase)) is not None
    ]
    return Table(tuple(middleware), names, tuple(rows))


def watched(table: Table) -> Table:
    """The table with each hook in the sight of the middlewares that watch hooks; as it is, if there are none."""
    watchers = [one for one in table.middleware if getattr(one, "watches_hooks", False)]
    hooks = table.hooks
    for watcher in watchers:
        hooks = tuple(hook if _only_listens(hook) else _watched(hook, watcher) for hook in hooks)
    return replace(table, hooks=hooks)


def _only_listens(hook: Hook) -> bool:
    return getattr(hook.middleware, "only_listens", False)


def _watched(hook: Hook, watcher: Any) -> Hook:
    watch: Callable[[], HookWatch] = partial(watcher.watch_hook, hook.name, hook.phase)
    sync, asynchronous = (_node, _anode) if hook.phase in NODE_PHASES else (_wrap, _awrap)
    also = asynchronous(hook.asynchronous, watch) if hook.asynchronous is not None else None
    return replace(hook, sync=sync(hook.sync, watch), asynchronous=also)


def _node(form: Callable[..., Any], watch: Callable[[], HookWatch]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with watch():
            return form(*args, **kwargs)

    return run


def _anode(form: Callable[..., Any], watch: Callable[[], HookWatch]) -> Callable[..., Any]:
    async def run(*args: Any, **kwargs: Any) -> Any:
        with watch():
            return await form(*args, **kwargs)

    return run


def _wrap(form: Callable[..., Any], watch: Callable[[], HookWatch]) -> Callable[..., Any]:
    def run(request: Any, handler: Callable[[Any], Any]) -> Any:
        with watch() as watching:

            def inner(request: Any) -> Any:
                with watching.inside():
                    return handler(request)

            return form(request, inner)

    return run


def _awrap(form: Callable[..., Any], watch: Callable[[], HookWatch]) -> Callable[..., Any]:
    async def run(request: Any, handler: Callable[[Any], Any]) -> Any:
        with watch() as watching:

            async def inner(request: Any) -> Any:
                with watching.inside():
                    return await handler(request)

            return await form(request, inner)

    return run


def _unique_names(middleware: Sequence[AnyMiddleware]) -> tuple[str, ...]:
    given: Sequence[object] = middleware
    for index, one in enumerate(given):
        if not isinstance(one, AgentMiddleware):
            hint = "; pass an instance" if isinstance(one, type) else ""
            raise ConfigurationError(f"middleware[{index}] is no AgentMiddleware, but {one!r}{hint}.")
    seen: set[int] = set()
    taken: set[str] = set()
    names: list[str] = []
    for one in middleware:
        if id(one) in seen:
            raise DuplicateMiddleware(one.name)
        seen.add(id(one))
        name, number = one.name, 1
        while name in taken:
            number += 1
            name = f"{one.name}#{number}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def _renamed(middleware: AnyMiddleware, name: str) -> AnyMiddleware:
    """The middleware as it calls itself in this agent."""
    renamed = getattr(middleware, "renamed", None)
    return middleware if renamed is None or name == middleware.name else renamed(name)


def _row(middleware: AnyMiddleware, name: str, phase: Phase) -> Hook | None:
    sync, asynchronous = _own(middleware, phase), _own(middleware, f"a{phase}")
    if sync is None and asynchronous is None:
        return None
    wraps = phase not in NODE_PHASES
    _refuse_unworkable(name, phase, sync, asynchronous)
    if asynchronous is None and wraps:
        asynchronous = partial(_missing_async, name, f"a{phase}")
    return Hook(
        middleware=middleware,
        name=name,
        phase=phase,
        sync=sync or partial(_missing, name, phase),
        asynchronous=asynchronous,
        jumps=_declared_jumps(sync, asynchronous),
        injected=() if wraps else _injected(sync or asynchronous),
    )


def _own(middleware: AnyMiddleware, method: str) -> Callable[..., Any] | None:
    """The method, if the middleware (class or instance) has one of its own."""
    found = getattr(middleware, method)
    inherited = getattr(found, "__func__", found) is getattr(AgentMiddleware, method)
    return None if inherited else found


def _refuse_unworkable(
    name: str, phase: Phase, sync: Callable[..., Any] | None, asynchronous: Callable[..., Any] | None
) -> None:
    if inspect.iscoroutinefunction(sync):
        raise InvalidHook(name, phase, f"is an async function; name it `a{phase}`.")
    function = getattr(asynchronous, "__func__", None)
    forms = (function, inspect.unwrap(function)) if inspect.isfunction(function) else ()  # a decorator may hide either
    if forms and not any(map(inspect.iscoroutinefunction, forms)):
        raise InvalidHook(name, f"a{phase}", "is not an async function; write `async def`.")
    if inspect.isgeneratorfunction(sync):
        raise InvalidHook(name, phase, "is a generator; only wraps of `agentkit.Middleware` may be written as one.")
    unknown = [jump for jump in _declared_jumps(sync, asynchronous) if jump not in _JUMPS]
    if unknown:
        raise InvalidHook(name, phase, f"declares a jump to {unknown[0]!r}; there are {', '.join(map(repr, _JUMPS))}.")


def _missing(name: str, hook: str, *args: Any, **kwargs: Any) -> Any:
    raise MissingHookForm(name, hook)


async def _missing_async(name: str, hook: str, *args: Any, **kwargs: Any) -> Any:
    raise MissingHookForm(name, hook)


def _declared_jumps(*forms: Callable[..., Any] | None) -> tuple[str, ...]:
    declared: dict[str, None] = {}
    for form in forms:
        declared.update(dict.fromkeys(getattr(form, "__can_jump_to__", ())))
    return tuple(declared)


def _injected(form: Callable[..., Any] | None) -> tuple[str, ...]:
    assert form is not None
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(form).parameters
    return tuple(name for name in parameters if name in _INJECTED)
