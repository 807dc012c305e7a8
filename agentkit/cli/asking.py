"""Questions of a paused run, put to whoever sits at the terminal: approvals, and plain interrupts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from agentkit.cli.screen import printable

if TYPE_CHECKING:
    from langchain_core.messages import ToolCall

__all__ = ["Asker", "Later", "going_on"]

_KIND: Final = "tool_approval"
_CHOICES: Final = {"approve": "a", "reject": "r", "edit": "e", "respond": "t"}
_LABELS: Final = {
    "approve": "[a]pprove",
    "reject": "[r]eject",
    "edit": "[e]dit",
    "respond": "[t]ell the result",
    "later": "[l]ater",
}


class Later(Exception):
    """The question is left open."""


@dataclass(frozen=True)
class _Call:
    """A tool call that is asked about."""

    name: str
    args: Mapping[str, Any]
    allowed: Sequence[str]
    facts: Sequence[str] = ()


@dataclass
class Asker:
    """Puts questions on a console and reads the answers."""

    console: Console
    read: Callable[[str], str]
    """Reads one line after a prompt; raises EOFError when there is none."""
    by: str
    """Who decides."""

    def answers(self, interrupts: Sequence[Any]) -> dict[str, Any]:
        """What to resume each question with, by its id.

        Raises:
            Later: If one is left open, or the input ends.
        """
        try:
            return {one.id: self._answer(one.value) for one in interrupts}
        except EOFError:
            raise Later from None

    def _answer(self, value: Any) -> Any:
        if isinstance(value, Mapping) and value.get("type") == _KIND:
            decision = self._decision(_Call(value["name"], value["args"], value["allowed"], _facts(value)))
            return {**decision, "by": self.by, "tool_call_id": value["tool_call_id"]}
        if isinstance(value, Mapping) and "action_requests" in value:  # LangChain's HumanInTheLoopMiddleware
            return {"decisions": [self._decision(call) for call in _reviewed(value)]}
        self.console.print(Text.assemble(("? ", "cyan"), _shown(value)))
        given = self.read("answer > ")
        try:
            return json.loads(given)
        except json.JSONDecodeError:
            return given

    def _decision(self, call: _Call) -> dict[str, Any]:
        self._show(call)
        kind = self._choice([*call.allowed, "later"])
        if kind == "later":
            raise Later
        if kind == "edit":
            return {"type": kind, "edited_action": {"name": call.name, "args": self._edited(call)}}
        if kind == "respond":
            return {"type": kind, "message": self.read("  the result to tell the agent > ")}
        if kind == "reject":
            why = self.read("  why (told to the agent; may be empty) > ").strip()
            return {"type": kind, **({"message": why} if why else {})}
        return {"type": kind}

    def _show(self, call: _Call) -> None:
        name = printable(call.name).replace("\n", "\\n")
        self.console.print(Text.assemble(("? ", "cyan"), (name, "bold"), " waits for your decision"))
        width = max(map(len, call.args), default=0)
        for name, value in call.args.items():
            below = f"\n{'':<{width + 6}}"  # a value of several lines must not pass for another argument
            self.console.print(Text(f"    {name:<{width}}  {_shown(value).replace(chr(10), below)}"))
        for fact in call.facts:
            self.console.print(Text(printable(f"  {fact}"), style="dim"))

    def _choice(self, kinds: Sequence[str]) -> str:
        by_key = {key: kind for kind in kinds for key in (kind, _CHOICES.get(kind, kind[0]))}
        by_key |= {"yes": "approve", "y": "approve", "no": "reject", "n": "reject"} if "approve" in kinds else {}
        labels = " ".join(_LABELS[kind] for kind in kinds)
        while True:
            given = self.read(f"  {labels} > ").strip().lower()
            if given in by_key and by_key[given] in kinds:
                return by_key[given]
            self.console.print(Text(f"  {given!r} is none of: {', '.join(kinds)}", style="red"))

    def _edited(self, call: _Call) -> dict[str, Any]:
        self.console.print(Text("  Enter keeps a value.", style="dim"))
        return {name: self._value(name, old) for name, old in call.args.items()}

    def _value(self, name: str, old: Any) -> Any:
        while True:
            given = self.read(f"    {name} [{_shown(old)}] > ")
            if not given.strip():
                return old
            if isinstance(old, str):
                return given.strip()
            try:
                return json.loads(given)
            except json.JSONDecodeError:
                self.console.print(Text(f"    write it as JSON, like {_shown(old)}", style="red"))


def _facts(request: Mapping[str, Any]) -> list[str]:
    """What else a person should know of a request for approval."""
    told = {
        "rule": "; ".join(request.get("rules") or ()),
        "may decide": ", ".join(request.get("among") or ()),
        "approved by": ", ".join(str(name) for name in request.get("approved_by") or ()),
        "expires": request.get("expires_at") or "",
    }
    return [f"{label}: {text}" for label, text in told.items() if text]


def _reviewed(value: Mapping[str, Any]) -> list[_Call]:
    allowed = {one["action_name"]: one["allowed_decisions"] for one in value.get("review_configs", ())}
    return [
        _Call(one["name"], one["args"], allowed.get(one["name"], ("approve", "reject")))
        for one in value["action_requests"]
    ]


def _shown(value: Any) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def going_on(interrupts: Sequence[Any], answers: Mapping[str, Any]) -> list[ToolCall]:
    """The calls that go on after these answers, as they will be executed."""
    from langchain_core.messages import ToolCall

    calls = []
    for one in interrupts:
        answer = answers.get(one.id)
        if isinstance(answer, dict) and answer.get("type") in ("approve", "edit") and isinstance(one.value, Mapping):
            args = answer.get("edited_action", one.value)["args"]
            calls.append(ToolCall(name=one.value["name"], args=args, id=one.value["tool_call_id"]))
    return calls
