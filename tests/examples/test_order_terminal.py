"""What the terminal shows: line breaks, tool lines, notes. In-process; `test_order_cli.py` runs the real command."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.

import asyncio
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from rich.cells import cell_len
from rich.console import Console

from agentkit import Limits
from agentkit.cli.terminal import ToolLines, Typewriter
from examples.order_assistant.assistant import build
from examples.order_assistant.offline_model import DialoguePlanner
from examples.order_assistant.planner import Step
from examples.order_assistant.session import Session
from examples.order_assistant.shop import Shop
from examples.order_assistant.texts import TEXTS
from tests.examples.shop_calls import EMMA, WANG


def _console(width: int = 80, **options: Any) -> tuple[Console, io.StringIO]:
    screen = io.StringIO()
    return Console(file=screen, width=width, highlight=False, **options), screen


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


Opened = tuple[Session, io.StringIO]


@pytest.fixture
def session(shop: Shop, runner: asyncio.Runner) -> Callable[..., Opened]:
    """Begin a conversation; everything it shows goes into the buffer."""

    def begin(customer: str = EMMA, language: str = "en", **kwargs: Any) -> Opened:
        console, screen = _console(width=200)
        agent = build(shop.path, checkpointer=InMemorySaver(), **kwargs)
        return Session(agent, customer, "t", language, console, runner), screen

    return begin


letters = st.sampled_from("ab, .“”（）\n订单号，。！？ORD-1")


@given(st.text(letters, max_size=200), st.integers(10, 60), st.randoms(use_true_random=False))
def test_text_survives_its_line_breaks_and_fits(text: str, width: int, random: Any) -> None:
    console, screen = _console(width)
    typewriter = Typewriter(console)
    rest = text
    while rest:
        cut = random.randint(1, 5)
        typewriter.write(rest[:cut])
        rest = rest[cut:]
    typewriter.end()
    shown = screen.getvalue()
    assert "".join(shown.split()) == "".join(text.split())
    longest_word = max((cell_len(word) for word in text.split()), default=0)
    # Marks that may not begin a line hang over; everything else fits.
    marks = sum(letter in "，。！？）”" for letter in text)
    assert all(cell_len(line) <= max(width, longest_word) + 2 * marks for line in shown.splitlines())


def test_words_are_not_split_and_marks_do_not_begin_a_line() -> None:
    console, screen = _console(20)
    typewriter = Typewriter(console)
    typewriter.write("Where is my parcel, please? 您的订单已经发出，预计明天送达。请回答“是”或“不”。")
    typewriter.end()
    lines = screen.getvalue().splitlines()
    assert [line.rstrip() for line in lines[:2]] == ["Where is my", "parcel, please? 您"]
    assert all(cell_len(line) <= 20 for line in lines)
    assert not any(line[0] in "，。”" for line in lines)
    assert not any(line.endswith("“") for line in lines)


@pytest.mark.parametrize("emoji", ["👩\u200d👩\u200d👧\u200d👦", "👍🏽", "❤\ufe0f\u200d🔥"])
def test_an_emoji_of_several_signs_is_not_split(emoji: str) -> None:
    console, screen = _console(20)
    typewriter = Typewriter(console)
    for sign in f"{emoji}您{emoji} " * 12:
        typewriter.write(sign)
    typewriter.end()
    assert len(screen.getvalue().splitlines()) > 2
    assert sum(line.count(emoji) for line in screen.getvalue().splitlines()) == 24


def test_the_indentation_of_a_list_is_kept() -> None:
    console, screen = _console(20)
    typewriter = Typewriter(console)
    typewriter.write("- one\n  - two and a half words more")
    typewriter.end()
    assert screen.getvalue() == "- one\n  - two and a half\nwords more\n"


CALL: Any = {"name": "get_order", "args": {"order_number": "ORD-1"}, "id": "c1", "type": "tool_call"}


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (ToolMessage("{}", tool_call_id="c1"), "✓ done get_order(order_number=ORD-1)"),
        (
            ToolMessage("no such order", tool_call_id="c1", status="error"),
            "✗ failed get_order(order_number=ORD-1): no such order",
        ),
        (ToolMessage("{}", tool_call_id="another"), "- not run get_order(order_number=ORD-1)"),
    ],
)
def test_each_tool_call_ends_in_one_line(message: ToolMessage, line: str) -> None:
    console, screen = _console()
    tools = ToolLines(console, TEXTS["en"])
    tools.start([CALL])
    tools.finish(message)
    tools.finish(message)
    tools.close()
    assert screen.getvalue() == line + "\n"


def test_on_a_terminal_running_calls_are_shown_too() -> None:
    console, screen = _console(force_terminal=True)
    tools = ToolLines(console, TEXTS["en"])
    tools.start([CALL])
    assert "get_order(order_number=ORD-1)" in screen.getvalue()
    assert "done" not in screen.getvalue()
    tools.finish(ToolMessage("{}", tool_call_id="c1"))
    assert "done" in screen.getvalue()


def test_a_run_that_a_limit_ended_says_so(session: Callable[..., Opened]) -> None:
    talk, screen = session(limits=Limits(model_calls=1))
    talk.ask("Where is my latest order?")
    assert "Stopped before an answer (step limit): " in screen.getvalue()
    assert talk.failures == 0


def test_a_run_that_ended_with_an_answer_does_not(session: Callable[..., Opened]) -> None:
    talk, screen = session(WANG, "zh")
    talk.ask("你好")
    assert "停止" not in screen.getvalue()


def test_each_reason_has_words_in_both_languages() -> None:
    from typing import get_args

    from agentkit.exits import Reason

    answered = {"answer", "structured", "return_direct"}
    tables: Mapping[str, Mapping[str, str]] = TEXTS
    for language, words in tables.items():
        assert set(get_args(Reason)) - answered <= words.keys(), language
    assert tables["en"].keys() == tables["zh"].keys()


class _Unreachable(DialoguePlanner):
    def _step(self, *_: Any) -> Step:
        raise ConnectionError("the line is\ndead")


def test_an_error_of_the_model_is_one_line_and_the_talk_goes_on(session: Callable[..., Opened]) -> None:
    talk, screen = session(model=_Unreachable())
    talk.ask("hello")
    assert "The assistant could not answer: ConnectionError: the line is dead\n" in screen.getvalue()
    assert talk.failures == 1


def test_an_answer_that_was_cut_off_is_finished_at_the_next_start(session: Callable[..., Opened]) -> None:
    talk, screen = session()
    started = talk.agent.stream(
        {"messages": "Where is my latest order?"},
        talk.config,
        context=None,
        interrupt_before=["tools"],
    )
    list(started)
    talk.welcome()
    shown = screen.getvalue()
    assert "The last answer was cut off; finishing it now." in shown
    assert "Order ORD-22301 went out with" in shown


def test_coming_back_recalls_how_far_one_was(session: Callable[..., Opened]) -> None:
    talk, screen = session()
    talk.ask("hello")
    talk.ask("my latest order")
    talk.welcome()
    assert "Continuing where you left off (2 questions so far)" in screen.getvalue()
    talk.thread = "another"
    talk.welcome()
    assert screen.getvalue().count("Continuing") == 1


def test_customers_do_not_share_a_conversation(session: Callable[..., Opened]) -> None:
    emma, _ = session()
    emma.ask("refund order 22080")
    console, screen = _console()
    wang = Session(emma.agent, WANG, emma.thread, "zh", console, emma.runner)
    wang.welcome()
    wang.ask("是")
    assert "接着上次的会话" not in screen.getvalue()
    assert "目前没有等待您确认的事项" in screen.getvalue()
