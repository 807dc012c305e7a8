"""A scene as SVG."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from agentkit.cli.picture.scene import Area, Arrow, Scene, Words

__all__ = ["as_svg"]

_HEAD = (
    '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0,0 L10,5 L0,10 z" fill="#374151"/></marker></defs>'
)


def as_svg(scene: Scene) -> str:
    """Write a scene as SVG, with nothing that has to be fetched."""
    size = f'width="{scene.width:.0f}" height="{scene.height:.0f}" viewBox="0 0 {scene.width:.0f} {scene.height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(scene.title)}>',
        f"<title>{escape(scene.title)}</title>{_HEAD}",
        f'<rect width="{scene.width:.0f}" height="{scene.height:.0f}" fill="#ffffff"/>',
        *map(_area, scene.areas),
        *map(_arrow, scene.arrows),
        '<g font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif" dominant-baseline="central">',
        *map(_words, scene.words),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _area(area: Area) -> str:
    return (
        f'<rect x="{area.x:.1f}" y="{area.y:.1f}" width="{area.width:.1f}" height="{area.height:.1f}" '
        f'rx="{area.round}" fill="{area.fill}" stroke="{area.edge}"/>'
    )


def _arrow(arrow: Arrow) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in arrow.points)
    dash = ' stroke-dasharray="5 4"' if arrow.dashed else ""
    head = ' marker-end="url(#head)"' if arrow.head else ""
    return f'<polyline points="{points}" fill="none" stroke="#374151" stroke-linejoin="round"{dash}{head}/>'


def _words(words: Words) -> str:
    place = f'x="{words.x:.1f}" y="{words.y:.1f}" font-size="{words.size}" fill="{words.colour}"'
    return f"<text {place}>{escape(words.text)}</text>"
