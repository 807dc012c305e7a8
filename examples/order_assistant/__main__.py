"""`python -m examples.order_assistant`: talk to the order assistant in the terminal."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")

_MISTAKE = 2


class Language(StrEnum):
    """The languages of the screen texts."""

    en = "en"
    zh = "zh"


_CUSTOMER_HELP = (
    "Who is signed in, by id or full name: C-1001 (Emma Clarke, the default), C-1002 (Lukas Bergmann), "
    "C-1003 (Wang Fang, who reads Chinese; the default with --lang zh), up to C-1024."
)
_DB_HELP = (
    "The shop's SQLite file, created on first use; conversations are kept beside it. "
    "Without it: a file in your data directory."
)
_MODEL_HELP = (
    "A model for LangChain's init_chat_model, such as openai:gpt-5.5, or 'offline'. Without it: the endpoint "
    "that OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL describe; without those: offline."
)
_THREAD_HELP = "Name of the conversation to continue or to begin."
_LANG_HELP = "Language of the screen texts. Answers are in the language you write in."
_SCRIPT_HELP = (
    "Play a fixed conversation in both languages, or in that of --lang, and leave. "
    "Without --db: on a database that is thrown away."
)


@app.command()
def chat(
    customer: Annotated[str | None, typer.Option(metavar="WHO", help=_CUSTOMER_HELP)] = None,
    db: Annotated[Path | None, typer.Option(metavar="PATH", help=_DB_HELP)] = None,
    model: Annotated[str | None, typer.Option(metavar="PROVIDER:NAME", help=_MODEL_HELP)] = None,
    thread: Annotated[str, typer.Option(metavar="NAME", help=_THREAD_HELP)] = "main",
    lang: Annotated[Language | None, typer.Option(help=_LANG_HELP)] = None,
    script: Annotated[bool, typer.Option("--script", help=_SCRIPT_HELP)] = False,
) -> None:
    """Talk to the order assistant of a small demo shop, in English or Chinese.

    It looks up the signed-in customer's orders and parcels, refunds them, and knows the shop's products and
    reviews, all from a real SQLite database. It needs no key and no network: without a model it runs on a built-in
    dialogue planner.

    Things to say:

    - Where is my latest order?

    - Compare the Aurora Headphones and the Nimbus Earbuds

    - I'd like a refund for order ORD-22080

    - 我最近的订单到哪儿了
    """
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if script and customer is not None:
        _refuse("--script plays its own customers; leave --customer out")
    # Imported only now: LangChain takes seconds, and --help should not.
    from examples.order_assistant.launch import MISTAKES, Options, converse, play_scripts

    options = Options(customer, db, model, thread, lang.value if lang else None)
    console = Console(highlight=False)
    try:
        code = play_scripts(options, console) if script else converse(options, console)
    except MISTAKES as mistake:
        _refuse(str(mistake))
    except KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def _refuse(problem: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {problem}", markup=False)
    raise typer.Exit(_MISTAKE)


if __name__ == "__main__":
    app()
