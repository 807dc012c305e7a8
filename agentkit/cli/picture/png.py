"""A scene as PNG, drawn with Pillow and the font that it carries."""

from __future__ import annotations

import math
from io import BytesIO
from itertools import pairwise
from typing import Any, Final

from PIL import Image, ImageDraw, ImageFont

from agentkit.cli.picture.scene import Arrow, Point, Scene

__all__ = ["as_png"]

_SCALE: Final = 2  # pixels per unit, so that text is sharp
_INK: Final = "#374151"


def as_png(scene: Scene) -> bytes:
    """Draw a scene as PNG, at twice its size."""
    image = Image.new("RGB", (round(scene.width * _SCALE), round(scene.height * _SCALE)), "#ffffff")
    draw = ImageDraw.Draw(image)
    for area in scene.areas:
        corners = (area.x, area.y, area.x + area.width, area.y + area.height)
        place = tuple(each * _SCALE for each in corners)
        draw.rounded_rectangle(place, area.round * _SCALE, area.fill, area.edge, _SCALE)
    for arrow in scene.arrows:
        _draw_arrow(draw, arrow)
    for words in scene.words:
        font = ImageFont.load_default(words.size * _SCALE)
        draw.text((words.x * _SCALE, words.y * _SCALE), words.text, words.colour, font, anchor="lm")
    held = BytesIO()
    image.save(held, "PNG", optimize=True)
    return held.getvalue()


def _draw_arrow(draw: Any, arrow: Arrow) -> None:
    points = [(x * _SCALE, y * _SCALE) for x, y in arrow.points]
    for start, end in pairwise(points):
        for piece in _dashes(start, end) if arrow.dashed else [(start, end)]:
            draw.line(piece, _INK, _SCALE)
    if arrow.head:
        (x0, y0), (x1, y1) = points[-2:]
        angle = math.atan2(y1 - y0, x1 - x0)
        sides = [
            (x1 - 9 * _SCALE * math.cos(angle + turn), y1 - 9 * _SCALE * math.sin(angle + turn)) for turn in (0.4, -0.4)
        ]
        draw.polygon([(x1, y1), *sides], _INK)


def _dashes(start: Point, end: Point) -> list[tuple[Point, Point]]:
    length = math.dist(start, end)
    step, drawn = 9 * _SCALE, 5 * _SCALE
    if not length:
        return []
    unit = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    return [
        (
            (start[0] + unit[0] * at, start[1] + unit[1] * at),
            (start[0] + unit[0] * min(at + drawn, length), start[1] + unit[1] * min(at + drawn, length)),
        )
        for at in range(0, math.ceil(length), step)
    ]
