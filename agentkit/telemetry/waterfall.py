"""An exported run as one HTML page that needs nothing else: no script, no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from agentkit.telemetry.records import SpanRecord, roots, totals

__all__ = ["page"]

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; --chat: #4c78c8; --tool: #3a9d6e; --run: #8a63c9;
  --bad: #d0453b; --wait: #d08a1d; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1200px; padding: 0 1rem; }
h1 { font-size: 1.25rem; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
p, .soft { color: var(--soft); }
details { border-top: 1px solid var(--line); } details[open] { background: #8881; }
summary { display: grid; grid-template-columns: minmax(14rem, 2fr) 7rem 3fr; gap: .75rem; padding: .25rem .4rem;
  cursor: pointer; align-items: center; }
summary:focus-visible { outline: 2px solid var(--chat); }
.name { overflow-wrap: anywhere; } .time { text-align: right; font-variant-numeric: tabular-nums; }
.lane { position: relative; height: 1rem; background: #8881; border-radius: 3px; }
.bar { position: absolute; top: 0; bottom: 0; min-width: 2px; border-radius: 3px; background: var(--run); }
.chat { background: var(--chat); } .execute_tool { background: var(--tool); }
.interrupted, .cancelled, .limit, .rejected, .degraded, .handoff { background: var(--wait); }
.failed { background: var(--bad); }
.mark { position: absolute; top: -2px; bottom: -2px; width: 2px; background: currentColor; }
.tag { border: 1px solid var(--line); border-radius: 3px; padding: 0 .3rem; font-size: .8rem; margin-left: .4rem; }
table { border-collapse: collapse; margin: .25rem 0 .75rem 1.5rem; font-size: .85rem; }
td { padding: .1rem .75rem .1rem 0; vertical-align: top; overflow-wrap: anywhere; white-space: pre-wrap; }
td:first-child { color: var(--soft); white-space: nowrap; }
"""


def page(spans: Sequence[SpanRecord], title: str = "agentkit trace") -> str:
    """The page.

    Args:
        spans: What was exported.
        title: Its title.
    """
    runs = "".join(_run(root) for root in roots(spans))
    count = f"{len(spans)} spans"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><p>{count}. Open a line to see what was recorded.</p>{runs}</body></html>\n"
    )


def _run(root: SpanRecord) -> str:
    sent, received = totals(root)
    tokens = f", {sent} → {received} tokens" if sent or received else ""
    before = f", goes on from trace {', '.join(root.links)}" if root.links else ""
    head = (
        f"<h2>{escape(root.name)}</h2><p>{root.seconds:.3f} s{tokens}, trace {escape(root.trace)}{escape(before)}</p>"
    )
    return head + "".join(_row(span, root, depth) for span, depth in _walk(root, 0))


def _walk(span: SpanRecord, depth: int) -> Iterator[tuple[SpanRecord, int]]:
    yield span, depth
    for child in span.children:
        yield from _walk(child, depth + 1)


def _row(span: SpanRecord, root: SpanRecord, depth: int) -> str:
    told = span.attributes
    outcome = str(told.get("agentkit.outcome") or "")
    tags = [outcome if outcome not in ("", "success", "error") else "", str(told.get("error.type") or "")]
    shown = "".join(f'<span class="tag">{escape(tag)}</span>' for tag in tags if tag)
    sort = "failed" if span.failed else outcome if outcome not in ("", "success") else told.get("gen_ai.operation.name")
    marks = "".join(
        f'<span class="mark" style="left:{_percent(event["time"], root)}%" title="{escape(event["name"])}"></span>'
        for event in span.events
    )
    left = _percent(span.start, root)
    width = max(0.0, _percent(span.end, root) - left)
    bar = f'<span class="bar {escape(str(sort))}" style="left:{left}%;width:{width:.3f}%"></span>'
    name = f'<span class="name" style="padding-left:{depth * 1.1:.1f}rem">{escape(span.name)}{shown}</span>'
    return (
        f"<details><summary>{name}"
        f'<span class="time">{span.seconds * 1000:.1f} ms</span><span class="lane">{bar}{marks}</span></summary>'
        f"{_table(told)}{''.join(_event(event, root) for event in span.events)}</details>"
    )


def _percent(time: int, root: SpanRecord) -> float:
    whole = max(1, root.end - root.start)
    return round(min(100.0, max(0.0, (time - root.start) / whole * 100)), 3)


def _event(event: Any, root: SpanRecord) -> str:
    at = (event["time"] - root.start) / 1e6
    return _table({f"{event['name']} at {at:.1f} ms": "", **event["attributes"]})


def _table(told: Any) -> str:
    rows = "".join(f"<tr><td>{escape(str(key))}</td><td>{escape(str(value))}</td></tr>" for key, value in told.items())
    return f"<table>{rows}</table>" if rows else ""
