"""What goes wrong where runs are recorded, and where records are read."""

from __future__ import annotations

from agentkit.errors.building import AgentkitError

__all__ = ["MissingDependency", "UnreadableTrace"]


class MissingDependency(AgentkitError, ImportError):
    """A part of agentkit needs a package that is not installed.

    Attributes:
        extra: The extra of agentkit that brings it.
    """

    def __init__(self, package: str, extra: str, what: str) -> None:
        """Name the package that is missing, the extra, and what needs it."""
        self.extra = extra
        super().__init__(f"{what} needs the package {package}; install it with: pip install 'agentkit[{extra}]'")


class UnreadableTrace(AgentkitError, ValueError):
    """A file is no recorded run."""

    def __init__(self, file: str, why: str) -> None:
        """Name the file and say what is wrong."""
        super().__init__(
            f"{file} is no recorded run: {why}. Record one with agentkit.telemetry.console.FileExporter: one span per "
            "line, as JSON."
        )
