"""The recommended stack of shipped middleware."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentkit.errors import ConfigurationError
from agentkit.middleware.approval import Approval
from agentkit.middleware.approval_policy import ApprovalRule
from agentkit.middleware.effect_ledger import EffectLedger
from agentkit.middleware.facts import Facts
from agentkit.middleware.gate_rules import Rule
from agentkit.middleware.gates import Gates
from agentkit.middleware.model_retry import ModelRetry
from agentkit.middleware.reuse import Reuse
from agentkit.middleware.tool_retry import ToolRetry
from agentkit.middleware_base import Middleware

__all__ = ["standard"]


def standard(
    *rules: Rule,
    on_trip: Any = "wrap_up",
    facts: Sequence[str] = (),
    approve: Sequence[ApprovalRule | str] = (),
    fallbacks: Sequence[Any] = (),
    ledger: Any = None,
) -> list[Middleware]:
    """The recommended stack, in the right order, outermost first.

    Gates see what is left after retries; approval is asked once, outside of them; an exact repeat of a read is answered
    before it is retried; what is executed is recorded; facts go into the request last.

    ```python
    create_agent(model, tools, middleware=standard(StepBudget(10), approve=["refund"]), checkpointer=saver)
    ```

    Args:
        rules: When `Gates` ends a run. None: its default rules.
        on_trip: What happens then; see `Gates`.
        facts: State fields that the model is shown; see `Facts`. None: it is left out.
        approve: Which calls wait for a person; see `Approval`. Needs a checkpointer. None: it is left out.
        fallbacks: Models that take over when the first one fails; see `ModelRetry`.
        ledger: Where writing calls are recorded, so that none is executed twice: a `Ledger`, a URL or a SQLAlchemy
            `Engine`; see `EffectLedger`. None: it is left out.

    Raises:
        ConfigurationError: If `approve` is no list, or something else cannot be meant.
    """
    if isinstance(approve, str | ApprovalRule):
        raise ConfigurationError(f"standard: approve is a list of rules and names; write approve=[{approve!r}].")
    return [
        Gates(*rules, on_trip=on_trip),
        *([Approval(*approve)] if approve else []),
        Reuse(),
        ToolRetry(),
        *([EffectLedger(ledger)] if ledger is not None else []),
        ModelRetry(fallbacks=fallbacks),
        *([Facts(facts)] if facts else []),
    ]
