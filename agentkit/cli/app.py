"""The commands of `agentkit`, one module each. A module imports what is slow inside of its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from agentkit.cli import plan
from agentkit.cli.screen import Code, Mistake, complain, forgiving, one_line

__all__ = ["app"]

COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "plan": plan.plan,
}
GROUPS: Final[Mapping[str, typer.Typer]] = {}


class _Guarded(TyperGroup):
    """Turns what leaves a command into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        forgiving()
        try:
            return super().invoke(ctx)
        except Mistake as mistake:
            if ctx.params.get("traceback"):
                raise
            complain(str(mistake))
            raise typer.Exit(Code.mistake) from None
        except KeyboardInterrupt:
            raise typer.Exit(Code.interrupted) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params.get("traceback") or not _is_named(error):
                raise
            complain(one_line(error))
            raise typer.Exit(Code.findings) from None


def _is_named(error: Exception) -> bool:
    """Whether an error says by itself what was wrong; any other is a defect, whose traceback is wanted."""
    from agentkit.errors import AgentkitError

    return isinstance(error, AgentkitError)


app = typer.Typer(
    cls=_Guarded,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def agentkit(
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
