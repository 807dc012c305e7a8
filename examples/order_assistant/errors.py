"""The one way the shop says no."""

from __future__ import annotations

__all__ = ["ShopError"]


class ShopError(ValueError):
    """A wish the shop cannot grant, with a code for programs and a sentence for the model."""

    def __init__(self, code: str, message: str) -> None:
        """Keep the code apart, and put it first in the text."""
        super().__init__(f"{code}: {message}")
        self.code = code
