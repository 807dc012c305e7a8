"""The rules behind the offline model: from a conversation so far to its next step, as a pure function."""

from __future__ import annotations

from examples.order_assistant.planner.replay import Step, next_step

__all__ = ["Step", "next_step"]
