"""From command-line options to a running conversation."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from rich.console import Console

from examples.order_assistant.assistant import build
from examples.order_assistant.database import DatabaseUnusable, default_path
from examples.order_assistant.errors import UnknownCustomer
from examples.order_assistant.models import ModelUnusable, choose_model, describe
from examples.order_assistant.script import SCRIPTS
from examples.order_assistant.session import Session
from examples.order_assistant.shop import Shop
from examples.order_assistant.texts import TEXTS

__all__ = ["MISTAKES", "Options", "converse", "play_scripts"]

MISTAKES = (DatabaseUnusable, ModelUnusable, UnknownCustomer)
"""What a user can get wrong in the options; the message is fit to be shown."""

_DEFAULT_CUSTOMER = {"en": "C-1001", "zh": "C-1003"}
_TYPING_PACE = 0.012  # seconds per token of the offline planner, on a terminal


@dataclass(frozen=True)
class Options:
    """The command line, as given."""

    customer: str | None
    db: Path | None
    model: str | None
    thread: str
    language: str | None


def converse(options: Options, console: Console) -> int:
    """Chat until the input ends.

    Returns:
        The exit code: 0, 1 when a question got an error instead of an answer, 130 when an answer was interrupted.

    Raises:
        DatabaseUnusable, ModelUnusable, UnknownCustomer: A mistake in the options.
    """
    db = options.db or default_path()
    with _session(options, db, console) as session:
        interrupted = False
        try:
            session.welcome()
            session.chat()
        except KeyboardInterrupt:
            interrupted = True
        session.note(session.words["left"].format(customer=session.customer_id, thread=session.thread))
        return 130 if interrupted else min(session.failures, 1)


def play_scripts(options: Options, console: Console) -> int:
    """Play the scripted conversations, each in a new thread; without a database of the user's, on a passing one.

    Returns:
        The exit code: 0, or 1 when a question got an error instead of an answer.

    Raises:
        DatabaseUnusable, ModelUnusable, UnknownCustomer: A mistake in the options.
    """
    failures = 0
    with tempfile.TemporaryDirectory(prefix="order-assistant-") as passing:
        db = options.db or Path(passing) / "shop.db"
        for language, script in SCRIPTS.items():
            if options.language in (None, language):
                thread = f"script-{os.urandom(3).hex()}"
                chosen = replace(options, customer=script.customer_id, thread=thread, language=language)
                with _session(chosen, db, console) as session:
                    session.play(script.lines)
                    failures += session.failures
    return min(failures, 1)


@contextmanager
def _session(options: Options, db: Path, console: Console) -> Iterator[Session]:
    """Open the shop, the model and the saver, and greet."""
    shop = Shop.open(db)
    customer = shop.profile(_customer_id(shop, options))
    language = options.language or ("zh" if customer["locale"] == "zh-CN" else "en")
    pace = _TYPING_PACE if console.is_terminal else 0.0
    model = choose_model(options.model, os.environ, pace)
    with asyncio.Runner() as runner, _saver(shop.path.with_name(f"{shop.path.stem}.threads.db"), runner) as saver:
        agent = build(shop.path, model, saver)
        session = Session(agent, customer["id"], options.thread, language, console, runner)
        words, (name, offline) = TEXTS[language], describe(model)
        session.note(words["title"], style="bold")
        session.note(words["customer"].format(name=customer["name"], id=customer["id"], thread=options.thread))
        session.note(words["offline"] if offline else words["model"].format(name=name))
        yield session


def _customer_id(shop: Shop, options: Options) -> str:
    wanted = options.customer or _DEFAULT_CUSTOMER[options.language or "en"]
    customer_id = shop.customer_id(wanted)
    if customer_id is None:
        raise UnknownCustomer(wanted)
    return customer_id


@contextmanager
def _saver(path: Path, runner: asyncio.Runner) -> Iterator[AsyncSqliteSaver]:
    """Keep conversations in a SQLite file, for as long as the context lasts."""
    stack = AsyncExitStack()

    async def open_file() -> AsyncSqliteSaver:
        saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(path)))
        await saver.setup()
        await saver.conn.execute("PRAGMA synchronous = NORMAL")  # safe with the saver's write-ahead log; fewer waits
        return saver

    try:
        saver = runner.run(open_file())
    except sqlite3.Error as error:
        runner.run(stack.aclose())
        raise DatabaseUnusable(path, str(error)) from error
    try:
        yield saver
    finally:
        runner.run(stack.aclose())
