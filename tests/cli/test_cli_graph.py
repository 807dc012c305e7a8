"""`agentkit graph` and `agentkit plan`: pictures of agents and graphs, in every format, without leaving the machine."""

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import END, START
from PIL import Image

from agentkit.cli.pictures.graphs import picture_of
from agentkit.cli.pictures.layout import Layout, Line, Placed
from agentkit.cli.pictures.mermaid import as_mermaid
from agentkit.cli.pictures.parts import Box, Link, Picture, boxes_of
from agentkit.cli.pictures.text import as_text
from agentkit.cli.pictures.vector import _layout, as_svg
from tests.cli import graphs
from tests.cli.conftest import Command
from tests.cli.shop import support

GRAPHS = Path(graphs.__file__)


def test_an_agent_is_drawn_with_its_phases_gates_and_approvals(agentkit: Command) -> None:
    done = agentkit("graph", "shop:support")
    assert done.exit_code == 0, done.output
    shown = done.stdout
    assert "─ before_model · gate ─" in shown
    assert "Gates  (gate, may jump to end, model)" in shown
    assert "─ tools · approval ─" in shown
    assert re.search(r"│ refund +\(approval\) ", shown)
    assert not re.search(r"order_status +\(approval\)", shown)
    assert "wrapped by Gates, Approval, ModelRetry" in shown
    assert shown.index("before_agent") < shown.index("before_model") < shown.index("━ model") < shown.index("─ tools")
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


def test_thirty_nodes_fit_80_columns_and_each_is_there_once(agentkit: Command) -> None:
    shown = agentkit("graph", f"{GRAPHS}:thirty").stdout
    assert max(map(len, shown.splitlines())) <= 80
    for name in graphs.thirty().nodes:
        assert len(re.findall(rf"[│┃] +{name}\b", shown)) == 1, name
    assert "▼ again" in shown or "again ▼" in shown
    assert "merge · deferred" in shown


def test_a_subgraph_is_drawn_inside_of_its_node_or_left_out(agentkit: Command) -> None:
    shown = agentkit("graph", f"{GRAPHS}:nested").stdout
    assert "─ inner ─" in shown
    assert "normalise" in shown
    assert "before_model · gate" in shown  # the agent inside of the other node
    flat = agentkit("graph", f"{GRAPHS}:nested", "--flat").stdout
    assert "inner" in flat
    assert "normalise" not in flat


def test_what_a_graph_says_of_its_nodes_is_marked() -> None:
    picture = picture_of(graphs.joined())
    marks = {box.id: box.marks for box in picture.boxes if box.marks}
    assert marks == {"choose": ("waits for all",), "tell": ("pauses before",)}
    links = {(link.source, link.target): (link.decided, link.label) for link in picture.links}
    assert links == {
        (START, "fetch_cve"): (False, ""),
        (START, "fetch_cvss"): (False, ""),
        ("fetch_cve", "choose"): (False, ""),
        ("fetch_cvss", "choose"): (False, ""),
        ("fetch_cvss", "score"): (True, "for each"),
        ("choose", "score"): (True, ""),
        ("score", "tell"): (False, ""),
        ("tell", END): (False, ""),
    }


@pytest.mark.parametrize("name", ["thirty", "nested"])
def test_an_svg_holds_every_name_and_reaches_nowhere(agentkit: Command, folder: Path, name: str) -> None:
    done = agentkit("graph", f"{GRAPHS}:{name}", "-o", "out.svg")
    assert (done.exit_code, done.stdout) == (0, "")
    text = folder.joinpath("out.svg").read_text()
    svg = ElementTree.fromstring(text)
    words = {node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")}
    picture = picture_of(graphs.nested() if name == "nested" else graphs.thirty().compile())
    assert {box.title for box in boxes_of(picture)} <= words
    assert re.findall(r"https?://\S+", text) == ['http://www.w3.org/2000/svg"']


def test_a_png_is_one_and_is_written_to_a_pipe_too(agentkit: Command, folder: Path) -> None:
    assert agentkit("graph", "shop:make", "-o", "out.png").exit_code == 0
    image = Image.open(folder / "out.png")
    assert image.format == "PNG"
    colors = {color for _, color in image.convert("RGB").getcolors(1 << 24) or ()}
    assert (0xDC, 0xFC, 0xE7) in colors  # the model's box
    piped = agentkit("graph", "shop:make", "--format", "png")
    assert Image.open(io.BytesIO(piped.stdout_bytes)).size == image.size


def test_mermaid_names_every_box_and_way(agentkit: Command) -> None:
    text = agentkit("graph", f"{GRAPHS}:nested", "--format", "mermaid").stdout
    assert text.startswith("flowchart TD\n")
    picture = picture_of(graphs.nested())
    assert len(set(re.findall(r"^ +(?:subgraph )?(n\d+)[\[(]", text, re.M))) == len(boxes_of(picture))
    assert re.search(r'subgraph n\d+\["inner"\]', text)


def test_names_that_mermaid_and_svg_would_misread_are_written_so_that_they_are_not() -> None:
    picture = Picture((Box("a", 'a "<b>" & c'), Box("b", "b")), (Link("a", "b", True, "x < 1"),))
    assert "<b>a #quot;#lt;b#gt;#quot; #amp; c</b>" in as_mermaid(picture)
    assert ElementTree.fromstring(as_svg(picture)) is not None


def test_json_tells_boxes_and_links(agentkit: Command) -> None:
    told = json.loads(agentkit("graph", "shop:support", "--json").stdout)
    assert [box["id"] for box in told["boxes"]][:3] == [START, "before_agent", "before_model"]
    assert {"source": "model", "target": "after_model", "decided": False, "label": ""} in told["links"]


def test_a_screen_without_line_drawing_gets_plain_characters() -> None:
    assert as_text(picture_of(support), 80, plain=True).plain.isascii()


def test_a_plan_is_text_or_json_and_a_graph_has_none(agentkit: Command) -> None:
    assert agentkit("plan", "shop:support").stdout == f"{support.plan}\n"
    told = json.loads(agentkit("plan", "shop:support", "--json").stdout)
    assert [stop["name"] for stop in told["stops"]] == [stop.name for stop in support.plan.stops]
    done = agentkit("plan", f"{GRAPHS}:nested")
    assert done.exit_code == 2
    assert "draw it with: agentkit graph" in done.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [(["-o", "nowhere/out.svg"], "nowhere/out.svg cannot be written: No such file or directory"), (["-o", "."], ".")],
)
def test_a_file_that_cannot_be_written_is_a_mistake(agentkit: Command, options: list[str], told: str) -> None:
    done = agentkit("graph", "shop:support", *options)
    assert done.exit_code == 2
    assert told in done.stderr


# ---- what must hold for every picture


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    names = [f"n{number}" for number in range(draw(st.integers(1, 12)))]
    ends = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda pair: pair[0] != pair[1])
    pairs = draw(st.lists(ends, max_size=20, unique=True)) if len(names) > 1 else []
    boxes = tuple(Box(name, name * draw(st.integers(1, 4)), lines=("x",) * draw(st.integers(0, 3))) for name in names)
    return Picture(boxes, tuple(Link(*pair, draw(st.booleans())) for pair in pairs))


@settings(max_examples=30, deadline=None)
@given(pictures())
def test_no_box_lies_on_another_and_no_line_runs_through_one(picture: Picture) -> None:
    layout = _layout(picture)
    assert sorted(one.box.id for one in layout.boxes) == sorted(box.id for box in picture.boxes)
    for number, one in enumerate(layout.boxes):
        for other in layout.boxes[number + 1 :]:
            assert (
                one.x + one.width <= other.x
                or other.x + other.width <= one.x
                or one.y + one.height <= other.y
                or other.y + other.height <= one.y
            )
    assert [line for line in layout.lines if _is_hidden(line, layout)] == []


def _is_hidden(line: Line, layout: Layout) -> bool:
    return any(
        box.x < max(line.x1, line.x2)
        and min(line.x1, line.x2) < box.x + box.width
        and box.y < max(line.y1, line.y2) - 1
        and min(line.y1, line.y2) + 1 < box.y + box.height
        for box in layout.boxes
    )


@settings(max_examples=30, deadline=None)
@given(pictures())
def test_every_link_can_be_followed_from_its_source_to_an_arrow(picture: Picture) -> None:
    layout = _layout(picture)
    placed = {one.box.id: one for one in layout.boxes}
    for link in picture.links:
        begun = {
            line.net for line in layout.lines if _meets(placed[link.source], (line.x1, line.y1), (line.x2, line.y2))
        }
        arrived = {arrow.net for arrow in layout.arrows if _meets(placed[link.target], (arrow.x, arrow.y))}
        assert any(_holds_together(layout, net) for net in begun & arrived), link


def _meets(box: Placed, *points: tuple[float, float]) -> bool:
    """Whether one of the points lies on the upper or lower side of the box."""
    return any(box.x <= x <= box.x + box.width and y in (box.y, box.y + box.height) for x, y in points)


def _holds_together(layout: Layout, net: object) -> bool:
    """Whether all lines of a net hang on each other."""
    lines = [line for line in layout.lines if line.net == net]
    reached, left = [lines[0]], lines[1:]
    for line in reached:
        near = [one for one in left if _touch(line, one)]
        reached += near
        left = [one for one in left if one not in near]
    return not left


def _touch(one: Line, other: Line) -> bool:
    return (
        min(one.x1, one.x2) <= max(other.x1, other.x2)
        and min(other.x1, other.x2) <= max(one.x1, one.x2)
        and min(one.y1, one.y2) <= max(other.y1, other.y2)
        and min(other.y1, other.y2) <= max(one.y1, one.y2)
    )
