"""What users take for granted, of `EffectLedger`."""

from __future__ import annotations

from typing import Any

from agentkit.middleware import EffectLedger
from agentkit.testing import MiddlewareContract


class TestEffectLedger(MiddlewareContract):
    def make(self) -> Any:
        return EffectLedger("memory:")
