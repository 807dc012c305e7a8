"""The fixed conversations that `--script` plays."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.
from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SCRIPTS", "Script"]


@dataclass(frozen=True)
class Script:
    """What one customer says, line by line."""

    customer_id: str
    lines: tuple[str, ...]


SCRIPTS = {
    "en": Script(
        "C-1001",
        (
            "Hi there!",
            "Where is my latest order?",
            "Compare the reviews of the Aurora Headphones and the Nimbus Earbuds",
            "What about order ORD-22327?",  # Lukas Bergmann's
            "I'd like a refund for order ORD-22080",
            "Only the kettle, please",
            "Yes, please",
            "y",  # the shop's consent
            "Thanks, bye!",
        ),
    ),
    "zh": Script(
        "C-1003",
        (
            "你好",
            "我最近的订单到哪儿了？",
            "比较一下山脊双肩背包和漂流保温水瓶的评价",
            "帮我查一下订单 ORD-22301",  # Emma Clarke's
            "订单 ORD-22171 我想退款",
            "确认",
            "是",  # the shop's consent
            "谢谢，再见！",
        ),
    ),
}
"""A conversation for each language; both touch an order that is not the customer's own, and pay one refund."""
