"""A picture of characters, for terminals and text files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import groupby
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from agentkit.cli.pictures.layout import Arrow, Layout, Line, Measures, Placed, lay_out
from agentkit.cli.pictures.parts import Box, Picture

__all__ = ["as_text"]

_UP, _RIGHT, _DOWN, _LEFT = 1, 2, 4, 8
_FORMS: Final = dict(
    zip(
        (5, 10, 6, 12, 3, 9, 7, 13, 14, 11, 15, 1, 4, 2, 8),
        "│─┌┐└┘├┤┬┴┼││──",
        strict=True,
    )
)
_DASHED: Final = {"│": "┆", "─": "┄"}
_PLAIN: Final = str.maketrans("│─┌┐└┘├┤┬┴┼┆┄▼▲┏┓┗┛━┃·", "|-+++++++++:-v^++++=|,")
_LEGEND: Final = "┄ decided while it runs"
_TITLES: Final = {"model": "bold green", "tools": "bold cyan", "hooks": "bold magenta", "terminal": "dim"}


def as_text(picture: Picture, width: int, *, plain: bool = False) -> Text:
    """The picture as text with styles.

    Args:
        picture: What is drawn.
        width: How many columns there are; a picture is wider only if a single box or the lines beside it are.
        plain: Whether only ASCII characters can be shown.
    """
    measures = Measures(box=_size, label=_label, gap=3, port=4, track=1, room=1, inside=(3, 2), whole=True)
    canvas = _Canvas()
    layout = lay_out(picture, measures, width)
    canvas.draw(layout)
    text = canvas.text()
    if any(link.decided for link in picture.links):
        text.append(f"\n\n{_LEGEND}", style="dim")
    if plain:
        return Text(text.plain.translate(_PLAIN))
    return text


def _size(box: Box, inner: tuple[float, float]) -> tuple[float, float]:
    title = cell_len(_heading(box))
    if box.kind == "terminal":
        return title + 4, 1
    if box.inner:
        return max(inner[0] + 6, title + 6), inner[1] + 4
    if not box.lines:
        return title + 4, 3
    return max(title + 6, *(cell_len(line) + 4 for line in box.lines)), len(box.lines) + 2


def _label(label: str) -> float:
    return cell_len(label) + cell_len(label) % 2  # even, so that lines stay on whole columns


def _heading(box: Box) -> str:
    return " · ".join((box.title, *box.marks))


class _Canvas:
    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], tuple[str, str]] = {}
        self._masks: dict[tuple[int, int], dict[object, int]] = defaultdict(dict)
        self._dashed: set[tuple[int, int]] = set()

    def draw(self, layout: Layout) -> None:
        for line in layout.lines:
            if line.y1 == line.y2:
                self._across(line)
        for line in layout.lines:
            if line.y1 != line.y2:
                self._down(line)
        for place, masks in self._masks.items():
            self._cells[place] = (self._form(place, masks), "dim")
        for box in layout.boxes:
            self._box(box)
        for arrow in layout.arrows:
            self._arrow(arrow)
        for arrow in layout.arrows:
            self._label(arrow)

    def _across(self, line: Line) -> None:
        x1, x2, y = round(line.x1), round(line.x2), round(line.y1)
        for x in range(x1, x2 + 1):
            self._mark((x, y), line, (_LEFT if x > x1 else 0) | (_RIGHT if x < x2 else 0))

    def _down(self, line: Line) -> None:
        x, y1, y2 = round(line.x1), round(line.y1), round(line.y2)
        for y in range(y1, y2):
            meets = y == y1 and line.net in self._masks.get((x, y), {})
            self._mark((x, y), line, _DOWN if meets else _UP | _DOWN)
        if line.net in self._masks.get((x, y2), {}):
            self._mark((x, y2), line, _UP)

    def _mark(self, place: tuple[int, int], line: Line, mask: int) -> None:
        masks = self._masks[place]
        masks[line.net] = masks.get(line.net, 0) | mask
        if line.dashed:
            self._dashed.add(place)

    def _form(self, place: tuple[int, int], masks: Mapping[object, int]) -> str:
        straight = [mask for mask in masks.values() if mask == _UP | _DOWN]
        if len(masks) > 1 and straight:  # two ways cross: the one that leads on is drawn on top
            mask = straight[0]
        else:
            mask = 0
            for one in masks.values():
                mask |= one
        form = _FORMS[mask] if mask else " "
        return _DASHED.get(form, form) if place in self._dashed else form

    def _box(self, placed: Placed) -> None:
        box, x, y = placed.box, round(placed.x), round(placed.y)
        width, height = round(placed.width), round(placed.height)
        if box.kind == "terminal":
            pad = (width - cell_len(box.title) - 4) // 2
            self._write(x + pad, y, f"( {box.title} )", _TITLES["terminal"])
            return
        heavy = box.kind == "model"
        across, down, corners = ("━", "┃", "┏┓┗┛") if heavy else ("─", "│", "┌┐└┘")
        self._write(x, y, f"{corners[0]}{across * (width - 2)}{corners[1]}", "")
        for row in range(y + 1, y + height - 1):
            self._write(x, row, down, "")
            if not box.inner:
                self._write(x + 1, row, " " * (width - 2), "")
            self._write(x + width - 1, row, down, "")
        self._write(x, y + height - 1, f"{corners[2]}{across * (width - 2)}{corners[3]}", "")
        if box.lines or box.inner:
            self._write(x + 2, y, f" {_heading(box)} ", "")
            self._title(box, x + 3, y)
            for number, line in enumerate(box.lines):
                self._write(x + 2, y + 1 + number, line, "dim" if line.startswith((" ", "wrapped")) else "")
        else:
            self._title(box, x + (width - cell_len(_heading(box))) // 2, y + 1)

    def _title(self, box: Box, x: int, y: int) -> None:
        self._write(x, y, box.title, _TITLES.get(box.kind, "bold"))
        x += cell_len(box.title)
        for mark in box.marks:
            self._write(x, y, " · ", "dim")
            self._write(x + 3, y, mark, "yellow")
            x += 3 + cell_len(mark)

    def _arrow(self, arrow: Arrow) -> None:
        y = round(arrow.y) if arrow.up else round(arrow.y) - 1
        self._write(round(arrow.x), y, "▲" if arrow.up else "▼", "dim")

    def _label(self, arrow: Arrow) -> None:
        """Write what is decided beside the arrow, where nothing else stands."""
        if not arrow.label:
            return
        y, size = (round(arrow.y) if arrow.up else round(arrow.y) - 1), cell_len(arrow.label)
        for x in (round(arrow.x) + 2, round(arrow.x) - 1 - size):
            if x >= 0 and not any((column, y) in self._cells for column in range(x - 1, x + size + 1)):
                self._write(x, y, arrow.label, "italic")
                return

    def _write(self, x: int, y: int, text: str, style: str) -> None:
        for character in text:
            self._cells[x, y] = (character, style)
            wide = cell_len(character)
            if wide == 2:
                self._cells[x + 1, y] = ("", style)
            x += wide

    def text(self) -> Text:
        rows: dict[int, dict[int, tuple[str, str]]] = defaultdict(dict)
        for (x, y), cell in self._cells.items():
            rows[y][x] = cell
        lines = []
        for y in range(max(rows, default=-1) + 1):
            line = Text()
            cells = [rows[y].get(x, (" ", "")) for x in range(max(rows[y], default=-1) + 1)]
            for style, run in groupby(cells, key=lambda cell: cell[1]):
                line.append("".join(character for character, _ in run), style=style or None)
            line.rstrip()
            lines.append(line)
        return Text("\n").join(lines)
