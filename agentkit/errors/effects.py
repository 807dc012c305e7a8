"""What goes wrong around the record of effects."""

from __future__ import annotations

from agentkit.errors.building import AgentkitError

__all__ = [
    "EffectSuperseded",
    "InvalidSettlement",
    "LedgerError",
    "LedgerUnavailable",
    "NotJournaled",
    "UnknownEffect",
    "UnrecordableResult",
]


class LedgerError(AgentkitError, RuntimeError):
    """The ledger could not do its part. No retry takes it for a failure of the tool."""


class LedgerUnavailable(LedgerError):
    """The ledger's database cannot be reached, read or written.

    Attributes:
        database: Its URL, without the password.
    """

    def __init__(self, database: str, doing: str, cause: str) -> None:
        """Name the database, what was to be done, and the driver's error by its class."""
        self.database = database
        super().__init__(
            f"the ledger {database} could not {doing} ({cause}). A call is never executed unrecorded: what had no "
            "record yet was not executed. Bring the database back and resume the run."
        )


class EffectSuperseded(LedgerError):
    """A call was executed although another attempt at it had been allowed meanwhile.

    Attributes:
        tool: The name of the tool.
        key: The effect's key in the ledger.
    """

    def __init__(self, tool: str, key: str, *, happened: bool) -> None:
        """Name the tool, the effect, and whether this attempt took effect."""
        self.tool = tool
        self.key = key
        what = (
            "This attempt took effect all the same: look for a double effect"
            if happened
            else "This attempt was rolled back, so there is no double effect"
        )
        super().__init__(
            f"`{tool}`: another attempt at this effect ({key}) was started while this one was going on. {what}. "
            "Settle an effect as not done only when nothing works on it any more."
        )


class NotJournaled(LedgerError):
    """A tool asked for its call's transaction where there is none to be had; nothing was written."""

    def __init__(self, why: str) -> None:
        """Say why."""
        super().__init__(
            f"Ledger.transaction(): {why}. Use it once per call, inside of a tool, with the very `Ledger` object that "
            "was given to `EffectLedger`; the tool's contract must not say that it only reads."
        )


class UnrecordableResult(AgentkitError, TypeError):
    """A result cannot be recorded so that it could be given again as what it was.

    Attributes:
        tool: The name of the tool.
        where: The part of the result.
    """

    def __init__(self, tool: str, where: str, kind: str) -> None:
        """Name the tool, the part and its type."""
        self.tool = tool
        self.where = where
        super().__init__(
            f"the result of `{tool}` cannot be recorded: {where} is a {kind}. If the call took effect, that is "
            "recorded and it will not be executed again. Return plain data there (text, numbers, lists, dicts, dates, "
            "messages), or declare the tool `effect='read'` if it changes nothing."
        )


class UnknownEffect(AgentkitError, LookupError):
    """The ledger has no entry under this key.

    Attributes:
        key: The key.
    """

    def __init__(self, key: str) -> None:
        """Name the key."""
        self.key = key
        super().__init__(f"the ledger has no effect {key!r}. `Ledger.in_doubt()` lists those that can be settled.")


class InvalidSettlement(AgentkitError, ValueError):
    """A doubt cannot be settled like this; nothing was executed, and it is still open."""

    def __init__(self, why: str) -> None:
        """Say what is wrong."""
        super().__init__(f"settling a doubt: {why}")
