"""`Middleware`: a base class that lets a wrap be written once, as a generator, for sync and async."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from langchain.agents.middleware import AgentMiddleware

from agentkit.chain import Blocking, Paused, Sleep, adrive, drive

__all__ = ["Blocking", "HookWatch", "Middleware", "Named", "Paused", "Placement", "Sleep"]

_WRAPS: Final = ("wrap_model_call", "wrap_tool_call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a wrap must sit among the others. The default asks for nothing: list order, first outermost."""

    at: Literal["outermost", "innermost"] | None = None
    """Outside, or inside, of every other wrap."""

    outside: tuple[str, ...] = ()
    """Names of middlewares whose wraps this one must sit outside of, where they are present."""

    inside: tuple[str, ...] = ()
    """Names of middlewares whose wraps this one must sit inside of, where they are present."""


class HookWatch(AbstractContextManager["HookWatch"]):
    """Entered around one call of a hook."""

    def inside(self) -> AbstractContextManager[None]:
        """Entered around each call that a wrap makes of its handler: what it wraps is not the hook's own doing."""
        raise NotImplementedError


if TYPE_CHECKING:
    # A generator wrap has another signature than LangChain's, and users' type checkers must not object to one: for them
    # the base has no signatures at all. A middleware still goes wherever an `AgentMiddleware` is asked for.
    _Base: Any = AgentMiddleware
else:
    _Base = AgentMiddleware[Any, Any, Any]


class Middleware(_Base):  # type: ignore[misc]  # a base that is Any, on purpose
    """A LangChain middleware whose wraps may be generators, written once for sync and async.

    Yield the request (or another one) to call what is inside; the result comes back, and exceptions are raised, at the
    `yield`. Yield again to call again. What is returned is the wrap's result:

    ```python
    class Retry(Middleware):
        def wrap_model_call(self, request):
            try:
                return (yield request)
            except TimeoutError:
                return (yield request)
    ```

    To wait, `yield Sleep(seconds)`: in async code no thread is held. To call what blocks, `yield Blocking(function)`:
    in async code a thread calls it. Interrupts never reach a generator: it is closed instead, by a `Paused`. Node hooks
    (`before_model`, ...) are plain functions. It works under LangChain's own factory too; `placement` and `around_run`
    are then ignored.
    """

    model_placement: Placement = Placement()
    """Where `wrap_model_call` must sit."""

    tool_placement: Placement = Placement()
    """Where `wrap_tool_call` must sit."""

    pauses_tools: bool = False
    """Whether `wrap_tool_call` pauses single calls. When a new message comes instead of an answer, the results of those
    that went on are then kept; the engine would drop them. Costs one more reading of the thread per message."""

    only_listens: bool = False
    """Whether its wraps change nothing, so that they are no steps worth a LangSmith run of their own."""

    @property
    def watches_hooks(self) -> bool:
        """Whether `watch_hook` is asked around each call of the others' hooks. Read when an agent is built."""
        return False

    def watch_hook(self, middleware: str, hook: str) -> HookWatch:
        """What is entered around one call of a hook, for those with `watches_hooks`.

        Args:
            middleware: The name in the agent of the middleware whose hook it is.
            hook: `before_model`, `wrap_tool_call`, ...
        """
        raise NotImplementedError

    @property
    def named_tools(self) -> Collection[str]:
        """Names of the tools that it is about.

        `create_agent` refuses one that the agent does not have, unless a wrap from outside of agentkit may supply it.
        """
        return ()

    @property
    def named_fields(self) -> Collection[str]:
        """Names of the state fields that it reads; `create_agent` refuses one that no state schema declares."""
        return ()

    def renamed(self, name: str) -> Self:
        """This middleware under the name that is its own in an agent with several of its name (`NAME#2`).

        The default keeps it as it is. Where the name is the key of what it keeps in the state, return a copy that has
        the new one, or the instances share what they keep.

        Args:
            name: The name in that agent.
        """
        return self

    @property
    def is_watching(self) -> bool:
        """Whether `around_run` wants to see the next run. Asked before each: one with nothing to do costs nothing."""
        return True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Turn each wrap of the class that is a generator function into its sync and async form."""
        super().__init_subclass__(**kwargs)
        for name in _WRAPS:
            policy = cls.__dict__.get(name)
            if policy is not None and inspect.isgeneratorfunction(policy):
                setattr(cls, name, _sync_form(policy))
                if f"a{name}" not in cls.__dict__:
                    setattr(cls, f"a{name}", _async_form(policy))


class Named(Middleware):
    """A middleware that is given its name, and of which an agent may have several, each with what it keeps."""

    def __init__(self, name: str) -> None:
        """Take the name; those that come later under the same one in an agent are called `NAME#2`, `NAME#3`."""
        super().__init__()
        self._name = name

    @property
    def name(self) -> str:
        """The middleware's name."""
        return self._name

    def renamed(self, name: str) -> Self:
        """A copy under another name."""
        other = copy(self)
        other._name = name
        return other


Policy = Callable[[Any, Any], Generator[Any, Any, Any]]


def _sync_form(policy: Policy) -> Callable[[Any, Any, Callable[[Any], Any]], Any]:
    @wraps(policy)
    def wrap(self: Any, request: Any, handler: Callable[[Any], Any]) -> Any:
        return drive(policy(self, request), handler)

    return wrap


def _async_form(policy: Policy) -> Callable[[Any, Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]:
    @wraps(policy)
    async def wrap(self: Any, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await adrive(policy(self, request), handler)

    return wrap
