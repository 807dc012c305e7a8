"""What goes wrong while a run goes on."""

from __future__ import annotations

from collections.abc import Sequence

from langchain.agents.structured_output import StructuredOutputError
from langchain_core.messages import AnyMessage
from langchain_core.tools import ToolException

from agentkit.errors.building import AgentkitError

__all__ = [
    "ForgottenPause",
    "GateTripped",
    "HookError",
    "InvalidArguments",
    "MissingCheckpointer",
    "MissingHookForm",
    "MissingStructuredOutput",
    "MissingThread",
    "MissingToolForm",
    "NestedPause",
    "ToolTimeout",
    "TruncatedReply",
    "UndeclaredJump",
    "UnreadableReply",
    "UnusedDecision",
]


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


class InvalidArguments(AgentkitError, ToolException):
    """A call's arguments do not fit the tool's schema; nothing was executed.

    Attributes:
        tool: The name of the tool.
        problems: One line per argument: its name, and what is wrong.
    """

    def __init__(self, tool: str, problems: Sequence[str], sent: str, takes: str) -> None:
        """Name the tool and the problems, what was sent and what the tool takes."""
        self.tool = tool
        self.problems = tuple(problems)
        lines = "\n".join(f"- {problem}" for problem in problems)
        super().__init__(
            f"The call of `{tool}` was not executed: its arguments were refused with error:\n{lines}\n"
            f"You sent {sent}. It takes {takes}."
        )


class MissingToolForm(AgentkitError, NotImplementedError):
    """A tool that has only an async form was to run in a sync run. It was not executed.

    Attributes:
        tool: The name of the tool.
    """

    def __init__(self, tool: str) -> None:
        """Name the tool."""
        self.tool = tool
        super().__init__(
            f"Tool `{tool}` has no sync form, and `invoke` and `stream` need one: call the agent with `ainvoke` or "
            "`astream`, or give the tool a sync function beside its coroutine. The call was not executed."
        )


class ToolTimeout(AgentkitError, TimeoutError):
    """An execution of a tool took longer than its contract allows; the model is told.

    Attributes:
        tool: The name of the tool.
        seconds: The time that was allowed.
        outcome_unknown: Whether the call may have taken effect, so that repeating it could do it twice.
    """

    def __init__(self, tool: str, seconds: float, *, outcome_unknown: bool) -> None:
        """Name the tool, the time, and whether its effect is in doubt."""
        self.tool = tool
        self.seconds = seconds
        self.outcome_unknown = outcome_unknown
        warning = " Whether it took effect is unknown. Do not repeat this call before you have checked."
        doubt = warning if outcome_unknown else ""
        super().__init__(f"`{tool}` did not answer within {seconds:g} s and was given up.{doubt}")


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


class MissingThread(AgentkitError, ValueError):
    """A run of an agent with a checkpointer does not say which thread it belongs to, so it could not be stored."""

    def __init__(self, agent: str) -> None:
        """Name the agent."""
        super().__init__(
            f"Agent {agent!r} has a checkpointer, and this run names no thread to keep it in: pass "
            '`thread("some-id")` as its config, or {"configurable": {"thread_id": "some-id"}}.'
        )


class MissingCheckpointer(AgentkitError, RuntimeError):
    """A run has to pause for somebody's answer, but nothing stores it, so that it could never go on."""

    def __init__(self, asker: str) -> None:
        """Name who asks."""
        super().__init__(
            f"{asker} has to pause the run for an answer, but the agent has no checkpointer, so the run could never be "
            "resumed. What it asks about was not executed. Pass `checkpointer=` to create_agent (with sub-agents: to "
            "the outermost agent), and call it with `thread(...)`."
        )
