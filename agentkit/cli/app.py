"""The commands of `agentkit`, one module each. A module imports what is slow inside of its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from agentkit.cli import chat, check, graph, plan, run, threads, trace
from agentkit.cli.screen import Code, Stop, complain, forgiving, one_line

__all__ = ["app"]

COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "run": run.run,
    "chat": chat.chat,
    "check": check.check,
    "graph": graph.graph,
    "plan": plan.plan,
    "trace": trace.trace,
}
GROUPS: Final[Mapping[str, typer.Typer]] = {
    "threads": threads.threads,
}

_UsageError: Final[Any] = typer.BadParameter.__mro__[1]  # has no public name of its own since Typer holds Click inside


class _Guarded(TyperGroup):
    """Turns what leaves a command into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        forgiving()
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except _UsageError as error:
            said = error.format_message().rstrip(".").replace("Value error, ", "")  # pydantic's, which Typer asks
            if not said or "\n" in error.message:  # a help page
                raise
            command = error.ctx.command_path if error.ctx else "agentkit"
            complain(f"{said}; see {command} --help")
            raise typer.Exit(Code.mistake) from None
        except KeyboardInterrupt:
            raise typer.Exit(Code.interrupted) from None
        except Exception as error:
            code = _code_of(error)
            if code is None or ctx.params.get("traceback"):
                raise
            complain(str(error) if isinstance(error, Stop) else one_line(error))
            raise typer.Exit(code) from None


def _code_of(error: Exception) -> Code | None:
    """How a command ends after an error; None if it does not say by itself what was wrong: that is a defect."""
    if isinstance(error, Stop):
        return error.code
    from agentkit.errors import AgentkitError, ConfigurationError, InvalidStoreUrl, MissingDependency

    if isinstance(error, ConfigurationError | InvalidStoreUrl | MissingDependency):
        return Code.mistake
    return Code.findings if isinstance(error, AgentkitError | OSError) else None  # a full disk is no defect


app = typer.Typer(
    cls=_Guarded,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        from agentkit.check.formats import own_version

        typer.echo(f"agentkit {own_version()}")
        raise typer.Exit


@app.callback()
def agentkit(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")] = False,
) -> None:
    """Run, talk to, draw, check and look after agents.

    MODULE:AGENT names an agent: a module and a name in it (`shop.agents:support`), or a file and a name
    (`shop/agents.py:support`). The name may be a compiled graph, a graph builder, or a function that makes one.

    Exit codes: 0 fine, 1 findings or a failed run, 2 a mistake in what was asked for, 130 interrupted.
    """


for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
for _name, _group in GROUPS.items():
    app.add_typer(_group, name=_name)
