"""The one way the shop says no."""

from __future__ import annotations

__all__ = ["ShopError", "UnknownCustomer"]


class ShopError(ValueError):
    """A wish the shop cannot grant, with a code for programs and a sentence for the model."""

    def __init__(self, code: str, message: str) -> None:
        """Keep the code apart, and put it first in the text."""
        super().__init__(f"{code}: {message}")
        self.code = code


class UnknownCustomer(ValueError):
    """Nobody has the id or name that the assistant was started for."""

    def __init__(self, wanted: str) -> None:
        """Say who was looked for, and who is there."""
        super().__init__(
            f"there is no customer {wanted!r}; try C-1001 (Emma Clarke), C-1002 (Lukas Bergmann) or C-1003 (王芳)"
        )
        self.wanted = wanted
