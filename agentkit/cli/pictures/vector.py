"""A picture of lines and colours: SVG by hand, PNG with Pillow, both from one drawing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from xml.sax.saxutils import escape

from rich.cells import cell_len

from agentkit.cli.pictures.layout import Arrow, Layout, Measures, Placed, lay_out
from agentkit.cli.pictures.parts import Box, Picture

__all__ = ["as_png", "as_svg"]

_FONT: Final = 14.0
_CHARACTER: Final = 8.43  # the width of one, in a font of fixed width at this size
_ROW: Final = 21.0
_HEAD: Final = 38.0
_PAD: Final = 15.0
_MARGIN: Final = 26.0
_LIMIT: Final = 1150.0
_SHARP: Final = 2  # pixels of the PNG per unit
_INK, _SOFT, _LINE, _MARK = "#1f2937", "#6b7280", "#64748b", "#b45309"
_LEGEND: Final = "dashed: decided while it runs"


@dataclass(frozen=True, slots=True)
class _Look:
    fill: str
    edge: str


_LOOKS: Final = {
    "terminal": _Look("#f1f5f9", "#94a3b8"),
    "model": _Look("#dcfce7", "#16a34a"),
    "tools": _Look("#e0f2fe", "#0284c7"),
    "hooks": _Look("#f3e8ff", "#9333ea"),
    "node": _Look("#ffffff", "#64748b"),
    "graph": _Look("#f8fafc", "#94a3b8"),
}


class _Painter(Protocol):
    def box(self, x: float, y: float, width: float, height: float, radius: float, look: _Look) -> None: ...
    def line(self, x1: float, y1: float, x2: float, y2: float, dashed: bool) -> None: ...
    def arrow(self, points: Sequence[tuple[float, float]]) -> None: ...
    def text(self, x: float, y: float, text: str, color: str, *, bold: bool = False, middle: bool = False) -> None: ...
    def label(self, x: float, y: float, text: str) -> None: ...


def as_svg(picture: Picture) -> str:
    """The picture as an SVG document, without fonts or links to elsewhere."""
    layout = _layout(picture)
    painter = _Svg()
    width, height = _paint(layout, painter, picture)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', '
        f'monospace" font-size="{_FONT:g}">\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
        + "\n".join(painter.parts)
        + "\n</svg>\n"
    )


def as_png(picture: Picture) -> bytes:
    """The picture as a PNG file.

    Raises:
        ImportError: If Pillow is not installed.
    """
    from PIL import Image

    layout = _layout(picture)
    width, height = _paint(layout, _Svg(), picture)
    image = Image.new("RGB", (round(width * _SHARP), round(height * _SHARP)), "#ffffff")
    _paint(layout, _Png(image), picture)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _layout(picture: Picture) -> Layout:
    measures = Measures(box=_size, label=_label, gap=34, port=28, track=16, room=20, inside=(26, 54))
    return lay_out(picture, measures, _LIMIT)


def _size(box: Box, inner: tuple[float, float]) -> tuple[float, float]:
    title = cell_len(" ".join((box.title, *(f"  {mark}  " for mark in box.marks)))) * _CHARACTER + 2 * _PAD
    if box.kind == "terminal":
        return title, 30
    if box.inner:
        return max(title, inner[0] + 52), inner[1] + 80
    lines = max((cell_len(line) * _CHARACTER for line in box.lines), default=0) + 2 * _PAD
    return max(title, lines), _HEAD + len(box.lines) * _ROW + (8 if box.lines else 0)


def _label(label: str) -> float:
    return cell_len(label) * _CHARACTER


def _paint(layout: Layout, painter: _Painter, picture: Picture) -> tuple[float, float]:
    """Draw everything; the size of the whole."""
    graphs = [one for one in layout.boxes if one.box.inner]
    for one in graphs:
        _paint_box(one, painter)
    for line in sorted(layout.lines, key=lambda line: line.dashed):
        ends = (line.x1 + _MARGIN, line.y1 + _MARGIN, line.x2 + _MARGIN, line.y2 + _MARGIN)
        painter.line(*ends, line.dashed)
    for one in layout.boxes:
        if not one.box.inner:
            _paint_box(one, painter)
    for arrow in layout.arrows:
        _paint_arrow(arrow, painter)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    if any(link.decided for link in picture.links):
        painter.text(_MARGIN, height + 2, _LEGEND, _SOFT)
        return max(width, len(_LEGEND) * _CHARACTER + 2 * _MARGIN), height + 22
    return width, height


def _paint_box(one: Placed, painter: _Painter) -> None:
    box, x, y = one.box, one.x + _MARGIN, one.y + _MARGIN
    painter.box(x, y, one.width, one.height, 15 if box.kind == "terminal" else 8, _LOOKS[box.kind])
    alone = not box.lines and not box.inner
    head = 30 if box.kind == "terminal" else _HEAD
    title = cell_len(box.title) * _CHARACTER
    marks = sum(cell_len(f"   {mark}  ") for mark in box.marks) * _CHARACTER
    left = x + ((one.width - title - marks) / 2 if alone else _PAD)
    if alone and not box.marks:
        painter.text(x + one.width / 2, y + head / 2, box.title, _INK, bold=True, middle=True)
    else:
        painter.text(left, y + head / 2, box.title, _INK, bold=True)
    left += title + _CHARACTER
    for mark in box.marks:
        width = (cell_len(mark) + 2) * _CHARACTER
        painter.box(left, y + head / 2 - 10, width, 20, 10, _Look("#fef3c7", "#f59e0b"))
        painter.text(left + width / 2, y + head / 2, mark, _MARK, middle=True)
        left += width + _CHARACTER
    for number, line in enumerate(box.lines):
        faint = line.startswith((" ", "wrapped"))
        painter.text(x + _PAD, y + _HEAD + (number + 0.4) * _ROW, line, _SOFT if faint else _INK)


def _paint_arrow(arrow: Arrow, painter: _Painter) -> None:
    x, y, way = arrow.x + _MARGIN, arrow.y + _MARGIN, (1 if arrow.up else -1)
    painter.arrow([(x, y), (x - 5, y + 9 * way), (x + 5, y + 9 * way)])
    if arrow.label:
        painter.label(x + 9, y + 11 * way, arrow.label)


class _Svg:
    def __init__(self) -> None:
        self.parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, radius: float, look: _Look) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}" '
            f'fill="{look.fill}" stroke="{look.edge}" stroke-width="1.4"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, dashed: bool) -> None:
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_LINE}" stroke-width="1.4" '
            f'stroke-linecap="round"{dashes}/>'
        )

    def arrow(self, points: Sequence[tuple[float, float]]) -> None:
        shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{shown}" fill="{_LINE}"/>')

    def text(self, x: float, y: float, text: str, color: str, *, bold: bool = False, middle: bool = False) -> None:
        style = (' font-weight="bold"' if bold else "") + (' text-anchor="middle"' if middle else "")
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" dy="0.35em" fill="{color}" xml:space="preserve"{style}>'
            f"{escape(text)}</text>"
        )

    def label(self, x: float, y: float, text: str) -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" dy="0.35em" fill="{_SOFT}" stroke="#ffffff" stroke-width="5" '
            f'paint-order="stroke">{escape(text)}</text>'
        )


class _Png:
    def __init__(self, image: Any) -> None:
        from PIL import ImageDraw, ImageFont

        self._draw = ImageDraw.Draw(image)
        self._font = ImageFont.load_default(_FONT * _SHARP)

    def box(self, x: float, y: float, width: float, height: float, radius: float, look: _Look) -> None:
        corners = [x * _SHARP, y * _SHARP, (x + width) * _SHARP, (y + height) * _SHARP]
        self._draw.rounded_rectangle(corners, radius * _SHARP, look.fill, look.edge, 3)

    def line(self, x1: float, y1: float, x2: float, y2: float, dashed: bool) -> None:
        length = abs(x2 - x1) + abs(y2 - y1)
        step, drawn = (9.0, 5.0) if dashed else (length, length)
        at = 0.0
        while at < length:
            a, b = at / length, min(at + drawn, length) / length
            ends = (x1 + (x2 - x1) * a, y1 + (y2 - y1) * a, x1 + (x2 - x1) * b, y1 + (y2 - y1) * b)
            self._draw.line([end * _SHARP for end in ends], fill=_LINE, width=3)
            at += step

    def arrow(self, points: Sequence[tuple[float, float]]) -> None:
        self._draw.polygon([(x * _SHARP, y * _SHARP) for x, y in points], fill=_LINE)

    def text(self, x: float, y: float, text: str, color: str, *, bold: bool = False, middle: bool = False) -> None:
        anchor = "mm" if middle else "lm"
        place = (x * _SHARP, y * _SHARP)
        self._draw.text(place, text, fill=color, font=self._font, anchor=anchor, stroke_width=0.6 if bold else 0)

    def label(self, x: float, y: float, text: str) -> None:
        place, halo = (x * _SHARP, y * _SHARP), 5
        self._draw.text(place, text, fill="#ffffff", font=self._font, anchor="lm", stroke_width=halo)
        self._draw.text(place, text, fill=_SOFT, font=self._font, anchor="lm")
