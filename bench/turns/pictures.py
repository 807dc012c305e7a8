"""Results as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.turns.measuring import Result
from bench.turns.scenario import LeftOut, import_or_leave_out
from bench.turns.telling import TITLES, is_of_a_thread

_COLOURS = {"hook": "#dd6b20", "turn": "#2b6cb0", "langchain": "#718096", "langchain, our saver": "#cbd5e0"}


def draw(results: Sequence[Result], folder: Path) -> list[str]:
    """Draw what can be drawn of the results into a folder.

    Returns:
        The names of the files; none if matplotlib is not installed.
    """
    try:
        import_or_leave_out("matplotlib", "matplotlib").use("Agg")
    except LeftOut:
        return []
    from matplotlib import pyplot

    made = []
    for name, rows, one in (("turns.png", _shares(results), _bars), ("threads.png", _marks(results), _lines)):
        if rows:
            figure = one(pyplot, rows)
            figure.savefig(folder / name, dpi=120)
            pyplot.close(figure)
            made.append(name)
    return made


def _shares(results: Sequence[Result]) -> list[Result]:
    return [
        r for r in results if not is_of_a_thread(r) and "turn / langchain" in r["ratios"] and ".cpu" not in r["row"]
    ]


def _bars(pyplot: Any, rows: Sequence[Result]) -> Any:
    """Each row as a share of LangChain's."""
    figure, axes = pyplot.subplots(figsize=(9, 0.5 * len(rows) + 1.4), layout="constrained")
    for shift, name in enumerate(("hook", "turn")):
        places = [place + 0.36 * shift for place in range(len(rows))]
        values = [row["ratios"][f"{name} / langchain"]["median"] for row in rows]
        axes.barh(places, values, height=0.34, color=_COLOURS[name], label=f'granularity "{name}"')
        for place, value in zip(places, values, strict=True):
            axes.text(value + 0.01, place, f"{value:.2f}", va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([place + 0.18 for place in range(len(rows))], [_label(row) for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_title("As a share of langchain.agents.create_agent", fontsize=10)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def _label(row: Result) -> str:
    return f"{row['row']}: {row['what']}"


def _marks(results: Sequence[Result]) -> list[Result]:
    """Rows of threads at a length, `S3-100` and what hangs on it."""
    return [r for r in results if is_of_a_thread(r) and "-" in r["row"]]


def _lines(pyplot: Any, rows: Sequence[Result]) -> Any:
    """Time and bytes of a thread over its length, each store in a line of its own."""
    stores = list(dict.fromkeys(row["row"].partition("-")[0] for row in rows))
    figure, grid = pyplot.subplots(len(stores), 2, figsize=(9, 3.4 * len(stores)), layout="constrained", squeeze=False)
    for store, axes in zip(stores, grid, strict=True):
        where = "PostgreSQL" if store == "S3p" else "SQLite"
        _growth(axes[0], store, "", rows, f"{where}: CPU ms per turn", 1)
        _growth(axes[1], store, "bytes", rows, f"{where}: MB of the thread", 1e6)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _growth(axes: Any, store: str, what: str, rows: Sequence[Result], title: str, unit: float) -> None:
    points = [(row, *row["row"].partition("-")[2].partition(".")[::2]) for row in rows]
    points = [(row, int(turns)) for row, turns, of in points if of == what and row["row"].startswith(f"{store}-")]
    for name in points[0][0]["values"]:
        values = [row["values"][name]["median"] / unit for row, _ in points]
        axes.plot([turns for _, turns in points], values, "o-", color=_COLOURS[name], label=_title(name), markersize=3)
    axes.set_xscale("log")
    if what == "bytes":
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xticks([turns for _, turns in points], [str(turns) for _, turns in points])
    axes.minorticks_off()
    axes.set_xlabel("turns", fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def _title(name: str) -> str:
    return TITLES.get(name, f'granularity "{name}"')
