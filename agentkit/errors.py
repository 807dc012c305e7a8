"""The errors of agentkit, one tree. Each class is also the nearest standard one.

```
AgentkitError
├── ConfigurationError (ValueError)         found while an agent is built
│   ├── DuplicateTool
│   ├── DuplicateMiddleware
│   ├── InvalidHook
│   ├── PlacementConflict
│   └── ReservedField
├── HookError (RuntimeError)                a middleware broke the protocol while a run went on
│   ├── UndeclaredJump
│   ├── MissingHookForm (NotImplementedError, TypeError)
│   ├── ForgottenPause
│   └── UnusedDecision
├── MissingStructuredOutput (StructuredOutputError)
├── TruncatedReply (ConnectionError)
├── UnreadableReply (ValueError)
├── GateTripped (RuntimeError)
└── NestedPause (RuntimeError)
```
"""

from __future__ import annotations

from langchain.agents.structured_output import StructuredOutputError
from langchain_core.messages import AnyMessage

__all__ = [
    "AgentkitError",
    "ConfigurationError",
    "ConfigurationWarning",
    "DuplicateMiddleware",
    "DuplicateTool",
    "ForgottenPause",
    "GateTripped",
    "HookError",
    "InvalidHook",
    "MissingHookForm",
    "MissingStructuredOutput",
    "NestedPause",
    "PlacementConflict",
    "ReservedField",
    "TruncatedReply",
    "UndeclaredJump",
    "UnreadableReply",
    "UnusedDecision",
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


class ConfigurationWarning(UserWarning):
    """Something that can work, but probably is not meant."""


class HookError(AgentkitError, RuntimeError):
    """A middleware broke the protocol: the text says which one, in which hook, and how to mend it.

    Attributes:
        middleware: The name of the middleware.
        hook: The name of the hook.
    """

    def __init__(self, middleware: str, hook: str, why: str) -> None:
        """Name the middleware, the hook and what was wrong."""
        self.middleware = middleware
        self.hook = hook
        super().__init__(f"{middleware}.{hook} {why}")


class UndeclaredJump(HookError):
    """A hook returned a `jump_to` that it did not declare.

    Attributes:
        target: The value of `jump_to`.
    """

    def __init__(
        self, middleware: str, hook: str, target: object, allowed: tuple[str, ...], declared: tuple[str, ...]
    ) -> None:
        """Name the hook, the target, what is obeyed here and what the hook declared."""
        self.target = target
        may = f"it may jump to {', '.join(map(repr, allowed))}" if allowed else "it declares no jumps"
        mend = f"Declare it with `@hook_config(can_jump_to=[{target!r}])`, or do not return it."
        if target in declared:
            may, mend = "the agent has no tools", "Give the agent tools, or look before jumping."
        super().__init__(middleware, hook, f"returned jump_to={target!r}, but {may}. {mend}")


class MissingHookForm(HookError, NotImplementedError, TypeError):
    """A hook exists in only one of its forms, sync or async, and the run needs the other."""

    def __init__(self, middleware: str, hook: str) -> None:
        """Name the middleware and the form that is missing."""
        is_async = hook.startswith("a") and not hook.startswith("after")
        entry = "ainvoke/astream" if is_async else "invoke/stream"
        other = "invoke/stream" if is_async else "ainvoke/astream"
        super().__init__(
            middleware,
            hook,
            f"is not written, and {entry} needs it. Write it, run the agent with {other}, "
            "or derive from `agentkit.Middleware` and write the wrap once as a generator.",
        )


class UnusedDecision(HookError):
    """A hook paused for a decision and, resumed with it, went on without reading it."""

    def __init__(self, middleware: str, hook: str) -> None:
        """Name the hook."""
        super().__init__(
            middleware,
            hook,
            "paused the run and was resumed with a decision, but did not ask again and so ignored it. Nothing was "
            "executed. What decides whether to pause must give the same answer when the hook runs again.",
        )


class ForgottenPause(HookError):
    """A hook paused, and run again before anybody answered, it went on."""

    def __init__(self, middleware: str, hook: str) -> None:
        """Name the hook."""
        super().__init__(
            middleware,
            hook,
            "paused the run and, run again, did not pause. What decides whether to pause must give the same answer "
            "when the hook runs again.",
        )


class MissingStructuredOutput(AgentkitError, StructuredOutputError):
    """The model gave no valid structured answer within the allowed tries.

    Attributes:
        tries: How many answers were asked for.
    """

    def __init__(self, tries: int, why: str) -> None:
        """Say how often it was tried and what was wrong with the last answer."""
        self.tries = tries
        super().__init__(
            f"no valid structured answer in {tries} tries: {why}. "
            "Raise `Limits.structured_retries`, simplify the schema, or use another strategy."
        )


class TruncatedReply(AgentkitError, ConnectionError):
    """The provider's stream broke off before the reply was complete, each time it was asked.

    Attributes:
        tries: How often the model was called.
    """

    def __init__(self, tries: int) -> None:
        """Say how often it was tried."""
        self.tries = tries
        super().__init__(
            f"the model's reply broke off before its finish reason, {tries} times in a row. Nothing of it was used. "
            "Check the connection to the provider, or retry the run."
        )


class UnreadableReply(AgentkitError, ValueError):
    """The model's replies could not be turned into a message, each time it was asked.

    Attributes:
        tries: How often the model was called.
    """

    def __init__(self, tries: int, why: str) -> None:
        """Say how often it was tried and what was wrong with the last reply."""
        self.tries = tries
        super().__init__(
            f"the model's reply could not be read, {tries} times in a row: {why}. Nothing of it was used. "
            "Check the tools' schemas, or use a model that follows them."
        )


class GateTripped(AgentkitError, RuntimeError):
    """A gate ended a run that is to end with an exception (`Gates(on_trip="raise")`).

    Attributes:
        reason: One word, as `Exit.reason`.
        detail: One sentence, as `Exit.detail`.
        source: The hook that ended the run.
        messages: The history so far; calls that were not executed are answered and say so.
    """

    def __init__(self, reason: str, detail: str, source: str, messages: list[AnyMessage]) -> None:
        """Name the gate and why it tripped."""
        self.reason = reason
        self.detail = detail
        self.source = source
        self.messages = messages
        super().__init__(
            f"{source} ended the run ({reason}): {detail}. The messages so far are in `messages`; "
            "raise the rule's threshold, or give the gate another `on_trip`, to get an answer instead."
        )


class NestedPause(AgentkitError, RuntimeError):
    """An agent with a thread of its own paused inside another run, which cannot wait for it."""

    def __init__(self, name: str) -> None:
        """Name the inner agent."""
        super().__init__(
            f"agent {name!r} paused for a person inside another run, but it has a thread of its own, so the outer run "
            "cannot pause with it. Call it without a thread id (then both pause together), "
            "or call it through `stream` and handle its pause."
        )
