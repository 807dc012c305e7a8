"""What the rules of `Gates` would have done to recorded conversations: `make bench-gates`.

Prints, per rule and threshold, how often it fires, how many of these conversations had failed anyway (precision), how
many of the failures it catches (recall), and what it costs the conversations that went well. With `--docs` it also
writes the table and the picture into the documentation.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentkit.middleware import ConsecutiveFailures, RepeatedCall, Rule, SameCallFailed, StepBudget, ToolCallBudget
from agentkit.middleware.gate_failures import DEFAULT_RULES
from bench.replay import Conversation, fires, fixed_part, read

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("AGENTKIT_SHARED") or ROOT.parent / "shared")
RECORDED = SHARED / "tau_retail" / "trajectories.jsonl"
PAGE = ROOT / "docs" / "bench" / "gates.md"
BEGIN, END = "<!-- begin: written by make bench-gates -->", "<!-- end -->"


def _default() -> Rule:
    joined = DEFAULT_RULES[0]
    for rule in DEFAULT_RULES[1:]:
        joined = joined | rule
    return joined


RULES: tuple[tuple[str, Rule, bool], ...] = (
    ("Gates(), the default rules", _default(), False),
    *((f"ConsecutiveFailures({n})", ConsecutiveFailures(n), False) for n in (2, 3, 4)),
    *((f"ConsecutiveFailures({n}), whole conversation", ConsecutiveFailures(n), True) for n in (2, 3)),
    *((f'ConsecutiveFailures({n}, of="tool")', ConsecutiveFailures(n, of="tool"), False) for n in (2, 3)),
    *((f"SameCallFailed({n})", SameCallFailed(n), False) for n in (2, 3)),
    *((f"RepeatedCall({n})", RepeatedCall(n), False) for n in (2, 3)),
    *((f"RepeatedCall({n}), whole conversation", RepeatedCall(n), True) for n in (2, 3)),
    *((f"StepBudget({n})", StepBudget(n), False) for n in (4, 6, 8, 10)),
    *((f'StepBudget({n}, per="thread")', StepBudget(n, per="thread"), False) for n in (15, 20, 25)),
    *((f'ToolCallBudget({n}, per="thread")', ToolCallBudget(n, per="thread"), False) for n in (10, 15)),
)


@dataclass(frozen=True)
class Row:
    """What one rule would have done to a group of conversations."""

    rule: str
    conversations: int
    failed: int
    fired: int
    caught: int
    """Fired in a conversation that failed."""
    harmed: int
    """Fired in a conversation that went well."""
    saved: float
    """Tokens after the firing, in failed conversations, as a share of all tokens of the group."""
    cut: float
    """The same in conversations that went well."""

    def cells(self) -> list[str]:
        """The row as text."""
        solved = self.conversations - self.failed
        return [
            self.rule,
            f"{self.fired} ({self.fired / self.conversations:.0%})",
            f"{self.caught / self.fired:.0%}" if self.fired else "-",
            f"{self.caught / self.failed:.0%}" if self.failed else "-",
            f"{self.harmed} ({self.harmed / solved:.0%})" if solved else "-",
            f"{self.saved:.1%}",
            f"{self.cut:.1%}",
        ]


HEAD = ["rule", "fires", "precision", "recall", "successes harmed", "tokens saved", "tokens cut"]


def measure(name: str, rule: Rule, whole: bool, group: Sequence[Conversation], fixed: int) -> Row:
    """Walk a group of conversations through one rule."""
    total = after_failed = after_solved = caught = harmed = 0
    for conversation in group:
        tokens = conversation.tokens(fixed)
        total += sum(tokens)
        firing = fires(rule, conversation, whole=whole)
        if firing is None:
            continue
        rest = sum(tokens[firing.calls_made :])
        if conversation.solved:
            harmed, after_solved = harmed + 1, after_solved + rest
        else:
            caught, after_failed = caught + 1, after_failed + rest
    failed = sum(not conversation.solved for conversation in group)
    return Row(name, len(group), failed, caught + harmed, caught, harmed, after_failed / total, after_solved / total)


def groups(conversations: Sequence[Conversation]) -> dict[str, list[Conversation]]:
    """All conversations, and those of each environment if there are several."""
    by_env: dict[str, list[Conversation]] = {}
    for conversation in conversations:
        by_env.setdefault(conversation.env, []).append(conversation)
    return {"all": list(conversations), **(by_env if len(by_env) > 1 else {})}


def markdown(title: str, rows: Sequence[Row]) -> str:
    """One group's table."""
    first = rows[0]
    lines = [
        f"### {title}: {first.conversations} conversations, {first.failed} failed",
        "",
        "| " + " | ".join(HEAD) + " |",
        "|---" * len(HEAD) + "|",
        *(
            "| " + " | ".join([f"`{row.rule}`" if "(" in row.rule else row.rule, *row.cells()[1:]]) + " |"
            for row in rows
        ),
    ]
    return "\n".join(lines)


def plain(title: str, rows: Sequence[Row]) -> str:
    """One group's table for a terminal."""
    cells = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEAD))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join([f"{title}: {rows[0].conversations} conversations, {rows[0].failed} failed", "", *lines])


def draw(rows: Sequence[Row], path: Path) -> bool:
    """Draw what each rule catches and harms; False if matplotlib is not installed."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [row.rule for row in rows]
    places = range(len(rows))
    figure, axes = pyplot.subplots(figsize=(9, 0.36 * len(rows) + 1.4), layout="constrained")
    caught = [100 * row.caught / row.failed for row in rows]
    harmed = [-100 * row.harmed / (row.conversations - row.failed) for row in rows]
    axes.barh(places, caught, color="#2b6cb0", label="failed conversations it would have ended")
    axes.barh(places, harmed, color="#dd6b20", label="conversations that went well and would have been cut")
    for place, right, left in zip(places, caught, harmed, strict=True):
        axes.text(right + 1, place, f"{right:.0f} %", va="center", fontsize=8)
        axes.text(left - 1, place, f"{abs(left):.0f} %", va="center", ha="right", fontsize=8)
    axes.set_yticks(places, names, fontsize=8, family="monospace")
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlim(min(harmed) - 12, max(caught) + 12)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.tick_params(left=False)
    axes.set_title(f"{rows[0].conversations} recorded conversations, {rows[0].failed} of them failed", fontsize=10)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make bench-gates", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=RECORDED, help="conversations, one JSON object a line")
    parser.add_argument("--docs", action="store_true", help="write table and picture into docs/bench")
    given = parser.parse_args(arguments)
    if not given.file.exists():
        print(f"bench-gates: {given.file} is not here; name a file of recorded conversations", file=sys.stderr)
        return 2
    conversations, fixed = read(given.file), fixed_part(given.file.parent)
    tables = {
        title: [measure(name, rule, whole, group, fixed) for name, rule, whole in RULES]
        for title, group in groups(conversations).items()
    }
    print("\n\n".join(plain(title, rows) for title, rows in tables.items()))
    print("\nTokens are estimated: characters of the text over four, every prompt counted in full.")
    if given.docs:
        page = PAGE.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        table = "\n\n".join(markdown(title, rows) for title, rows in tables.items())
        PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")
        if not draw(tables["all"], PAGE.with_suffix(".png")):
            print("no picture: matplotlib is not installed (extra: bench)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
