"""A picture as text: one line per node, with lanes of box-drawing characters, or of ASCII alone."""

from __future__ import annotations

from typing import Final

from agentkit.cli.picture.layout import Layout
from agentkit.cli.picture.model import Box

__all__ = ["as_text"]

_MARKS: Final = {
    "end": "●",
    "hook": "○",
    "gate": "◆",
    "model": "■",
    "tools": "□",
    "pause": "‖",
    "node": "○",
    "graph": "▣",
}
_ASCII: Final = str.maketrans("●○◆■□‖▣│─╌╮╯┤┼├┬┴▼▽◄", "*o#M[=G|-.+++++++vv<")
_LEGEND: Final = {"gate": "◆ gate", "pause": "‖ asks a person", "graph": "▣ a graph of its own"}


def as_text(layout: Layout, *, ascii_only: bool = False) -> str:
    """Write a picture as text.

    Args:
        layout: The picture.
        ascii_only: Whether to use nothing but ASCII, for terminals and files that know no more.
    """
    boxes = layout.picture.boxes
    left = [_left(layout, row) for row in range(len(boxes))]
    width = max(len(text) for pair in left for text in pair) + 1
    lines = []
    for row, (upper, lower) in enumerate(left):
        lines.append(_with_lanes(layout, float(row), upper, width))
        if row < len(boxes) - 1:
            lines.append(_with_lanes(layout, row + 0.5, lower, width))
    text = "\n".join([*lines, *_below(layout)]) + "\n"
    return text.translate(_ASCII) if ascii_only else text


def _below(layout: Layout) -> list[str]:
    """What is said under the picture: the signs that are used, and the notes, which would push the lanes aside."""
    picture = layout.picture
    kinds = {box.kind for box in picture.boxes}
    signs = [text for kind, text in _LEGEND.items() if kind in kinds]
    signs += ["╌ ▽ only sometimes"] if any(line.chosen for line in picture.lines) else []
    notes = [f"{box.label}: {box.note}" for box in picture.boxes if box.note and box.note != box.kind]
    return [*(["", "   ".join(signs)] if signs else []), *(["", *notes] if notes else [])]


def _left(layout: Layout, row: int) -> tuple[str, str]:
    """A node's own line, and the one below it, without lanes."""
    boxes = layout.picture.boxes
    box = boxes[row]
    group = f"{_group(boxes, row):<13}" if any(each.group for each in boxes) else ""
    down = layout.straight.get(row)
    leaves = any(row == source for lane in layout.lanes for source, _ in lane.sources)
    arrow = ("▽" if down.chosen else "▼") if down else ("├" if leaves else " ")
    return f"{group}{_MARKS[box.kind]} {box.label} ", f"{' ' * len(group)}{arrow} "


def _group(boxes: tuple[Box, ...], row: int) -> str:
    group = boxes[row].group
    return "" if row and boxes[row - 1].group == group else group


def _with_lanes(layout: Layout, at: float, text: str, width: int) -> str:
    """A line of the picture: its text, and what the lanes show there. A lane that is only crossed stays `│`."""
    cells = [" "] * (3 * layout.columns + 1)
    reach = -1
    sign = "─"
    for lane in layout.lanes:
        position = 3 * lane.column + 2
        enters = at == lane.target
        leaving = [chosen for row, chosen in lane.sources if at == row + 0.5]
        if enters or leaving:
            reach = max(reach, position)
            sign = "╌" if leaving and all(leaving) else sign
            cells[position] = _corner(at > lane.top, at < lane.bottom)
        elif lane.top < at < lane.bottom:
            cells[position] = "│"
    if reach < 0:
        return (text.ljust(width) + "".join(cells)).rstrip()
    for position in range(reach):
        if cells[position] == " ":
            cells[position] = sign
        elif cells[position] in "╮╯┤":
            cells[position] = "┼" if cells[position] == "┤" else ("┬" if cells[position] == "╮" else "┴")
    enters_here = any(at == lane.target for lane in layout.lanes)
    filler = sign * (width - len(text))
    head = "◄" if enters_here else sign
    return (text + head + filler[1:] + "".join(cells)).rstrip() if filler else text + "".join(cells)


def _corner(above: bool, below: bool) -> str:
    return "┤" if above and below else "╯" if above else "╮"
