"""The root of the tree, and what is found while an agent is built."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "AgentkitError",
    "CannotJoin",
    "ConfigurationError",
    "ConfigurationWarning",
    "DuplicateMiddleware",
    "DuplicateTool",
    "InvalidContract",
    "InvalidHook",
    "NoGraph",
    "PlacementConflict",
    "ReservedField",
    "UnknownRule",
    "UnknownStateField",
    "UnknownToolName",
]


class AgentkitError(Exception):
    """Root of all errors that agentkit raises itself."""


class ConfigurationError(AgentkitError, ValueError):
    """An agent cannot be built as it was asked for."""


class DuplicateTool(ConfigurationError):
    """Two tools share one public name, so one of them could run in place of the other.

    Attributes:
        name: The name they share.
    """

    def __init__(self, name: str, first: str, second: str) -> None:
        """Name the tool and where both come from."""
        self.name = name
        super().__init__(
            f"two tools are named {name!r}: one from {first}, one from {second}. The model cannot tell them apart; "
            "rename one of them, or pass the same object only once."
        )


class DuplicateMiddleware(ConfigurationError):
    """The very same middleware object was given twice.

    Attributes:
        name: The name of the middleware.
    """

    def __init__(self, name: str) -> None:
        """Name the middleware."""
        self.name = name
        super().__init__(
            f"the same {name} object stands twice in `middleware`; its hooks would run twice with one state. "
            "Remove one, or make a second instance."
        )


class InvalidHook(ConfigurationError):
    """A hook is written in a way that cannot work.

    Attributes:
        middleware: The name of the middleware.
        hook: The name of the hook.
    """

    def __init__(self, middleware: str, hook: str, why: str) -> None:
        """Name the middleware, the hook and what is wrong."""
        self.middleware = middleware
        self.hook = hook
        super().__init__(f"{middleware}.{hook} {why}")


class PlacementConflict(ConfigurationError):
    """The places that middlewares ask for cannot all be had.

    Attributes:
        names: The middlewares that contradict each other.
    """

    def __init__(self, kind: str, names: tuple[str, ...], why: str) -> None:
        """Name the wraps (`model` or `tool`), the middlewares and the contradiction."""
        self.names = names
        super().__init__(
            f"the {kind} wraps of {' and '.join(names)} cannot be placed: {why}. "
            "Change the `Placement` of one of them, or leave one out."
        )


class ReservedField(ConfigurationError):
    """A state schema declares a field that the loop keeps for itself.

    Attributes:
        field: The name of the field.
    """

    def __init__(self, field: str, schema: str) -> None:
        """Name the field and the schema that declares it."""
        self.field = field
        super().__init__(f"{schema} declares the state field {field!r}, which agentkit writes itself; rename yours.")


class InvalidContract(ConfigurationError):
    """A tool's contract holds a value that cannot be meant.

    Attributes:
        field: The field of the contract.
    """

    def __init__(self, field: str, value: object, allowed: str, tool: str | None = None) -> None:
        """Name the field, its value, what is allowed, and the tool where it is known."""
        self.field = field
        where = f" of tool {tool!r}" if tool else ""
        super().__init__(f"the contract{where} has {field}={value!r}; allowed: {allowed}.")


class UnknownStateField(ConfigurationError):
    """A tool's contract or a middleware names a state field that the agent does not have.

    Attributes:
        field: The name of the field.
    """

    def __init__(self, field: str, who: str, where: str) -> None:
        """Name the field, who does what with it (`tool 'find' writes`), and where its name is written."""
        self.field = field
        super().__init__(
            f"{who} the state field {field!r}, which no state schema of the agent declares. "
            f"Declare it in `state_schema` (a TypedDict that extends AgentState), or correct {where}."
        )


class UnknownToolName(ConfigurationError):
    """A middleware is about a tool that the agent does not have, so it would never do what it is there for.

    Attributes:
        name: The name of no tool.
    """

    def __init__(self, name: str, middleware: str, known: Iterable[str]) -> None:
        """Name what is not there, the middleware that names it, and the tools that are there."""
        self.name = name
        there = ", ".join(sorted(known)) or "none"
        super().__init__(
            f"{middleware} names the tool {name!r}, which the agent does not have, so it would never apply to a call. "
            f"There are: {there}. Correct the name, or pass the tool."
        )


class CannotJoin(ConfigurationError):
    """`barrier` cannot make a branch wait for the others.

    Attributes:
        source: The node that the branch comes from.
        target: The node that should wait.
    """

    def __init__(self, source: str, target: str, why: str) -> None:
        """Name both nodes and what stands in the way."""
        self.source = source
        self.target = target
        super().__init__(
            f"barrier cannot join the branch from {source!r} before {target!r}: {why}. "
            "Name the nodes whose edges lead to the target, as the finding AK101 does."
        )


class NoGraph(ConfigurationError, TypeError):
    """What was to be checked is no graph."""

    def __init__(self, given: object) -> None:
        """Name what was given instead."""
        super().__init__(
            f"{type(given).__name__} is no graph that can be checked; give a StateGraph, a compiled one, or an agent "
            "(not the function that makes it, and not an entrypoint of the functional API)."
        )


class UnknownRule(ConfigurationError):
    """A rule is named that there is not.

    Attributes:
        code: The code.
    """

    def __init__(self, code: str, known: Iterable[str]) -> None:
        """Name the code and those that there are."""
        self.code = code
        super().__init__(f"there is no rule {code!r}; there are {', '.join(known)}.")


class ConfigurationWarning(UserWarning):
    """Something that can work, but probably is not meant."""
