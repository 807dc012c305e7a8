"""The assistant's tools.

Who the customer is comes from the run's context, which the caller sets; no tool has an argument for it, so the model
cannot ask about, or pay back, anybody else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from agentkit.ledger import Ledger
from agentkit.tools import with_contract
from examples.order_assistant.database import recorded
from examples.order_assistant.errors import ShopError
from examples.order_assistant.shop import Shop, normalise_number

__all__ = ["OrderTools", "ShopContext", "make_tools"]

OrderNumber = Annotated[str, Field(description="The order's number, for example ORD-12345.")]


@dataclass(frozen=True)
class ShopContext:
    """What the caller of a run knows and the model does not decide."""

    customer_id: str
    """The signed-in customer."""


Runtime = ToolRuntime[ShopContext, Any]


@dataclass(frozen=True)
class OrderTools:
    """The tools' bodies; the docstrings are what the model reads."""

    shop: Shop
    ledger: Ledger | None = None
    """Where refunds are recorded, in the shop's own database; None: nowhere."""

    def get_profile(self, runtime: Runtime) -> dict[str, Any]:
        """Get the customer's name, address and currency, today's date, and their five latest orders."""
        return self._ask(self.shop.profile, runtime)

    def get_latest_order(self, runtime: Runtime) -> dict[str, Any]:
        """Get the customer's most recent order with its lines, its amounts and what can be refunded."""
        return self._ask(self.shop.latest_order, runtime)

    def get_order(self, order_number: OrderNumber, runtime: Runtime) -> dict[str, Any]:
        """Get one of the customer's orders by number with its lines, its amounts and what can be refunded."""
        return self._ask(self.shop.order, runtime, order_number)

    def track_order(self, order_number: OrderNumber, runtime: Runtime) -> dict[str, Any]:
        """Get where an order's parcel is: carrier, dates and tracking events, newest first."""
        return self._ask(self.shop.tracking, runtime, order_number)

    def search_products(
        self,
        query: Annotated[str, Field(description="A few words, English or Chinese, for example 'headphones'.")],
        runtime: Runtime,
    ) -> dict[str, Any]:
        """Find products by words, with price and stock."""
        return self._ask(self.shop.find_products, runtime, query)

    def get_reviews(
        self,
        product: Annotated[str, Field(description="A product's SKU or its name, for example AU-101.")],
        runtime: Runtime,
    ) -> dict[str, Any]:
        """Get a product's average rating and its latest reviews."""
        return self._ask(self.shop.reviews, runtime, product)

    def refund_order(
        self,
        order_number: OrderNumber,
        reason: Annotated[str, Field(description="Why, in the customer's words.")],
        runtime: Runtime,
        amount_minor: Annotated[
            int | None,
            Field(description="Amount in minor units (cents, fen); leave out to refund all that is left."),
        ] = None,
    ) -> dict[str, Any]:
        """Pay money back for an order or a part of it. Only after the customer has confirmed order and amount."""
        key = _refund_key(runtime, normalise_number(order_number) or order_number, amount_minor)
        return self._ask(self._refund, runtime, order_number, amount_minor, reason, key)

    def _refund(self, *wish: Any) -> dict[str, Any]:
        if self.ledger is None:
            return self.shop.refund(*wish)
        with recorded(self.ledger) as connection:
            result = self.shop.refund_within(connection, *wish)
            self.ledger.record(result)  # for whoever resumes the run, should the process die right after the commit
        return result

    def _ask(self, question: Callable[..., dict[str, Any]], runtime: Runtime, *args: object) -> dict[str, Any]:
        customer_id = getattr(runtime.context, "customer_id", None)
        if not customer_id:
            raise ToolException("no_customer: nobody is signed in, so there is no account to look at")
        try:
            return question(customer_id, *args)
        except ShopError as error:
            raise ToolException(str(error)) from error


def make_tools(shop: Shop, ledger: Ledger | None = None) -> list[BaseTool]:
    """The seven tools on one shop, each with what it promises. Errors that the model can mend come back as results.

    With a ledger, a refund is committed together with its record; then it runs only beneath an `EffectLedger`.
    """
    bodies = OrderTools(shop, ledger)
    reads: tuple[Callable[..., dict[str, Any]], ...] = (
        bodies.get_profile,
        bodies.get_latest_order,
        bodies.get_order,
        bodies.track_order,
        bodies.search_products,
        bodies.get_reviews,
    )
    # The refund's key makes the same call harmless to repeat: it pays once, whatever runs it again.
    promises: dict[str, Any] = {
        "effect": "write",
        "idempotent": True,
        "transactional": ledger is not None,
        "risk": "money",
    }
    refund = with_contract(_tool(bodies.refund_order), **promises)
    return [*(with_contract(_tool(read), effect="read") for read in reads), refund]


def _tool(function: Callable[..., dict[str, Any]]) -> BaseTool:
    return StructuredTool.from_function(function, handle_tool_error=True)


def _refund_key(runtime: Runtime, number: str, minor: int | None) -> str:
    """The name of this one refund: equal when the same call runs again, in any process.

    The arguments are part of it because some providers use a call id again for another call of the same thread.
    """
    if runtime.tool_call_id is None:
        raise ValueError("refund_order needs a tool call id to pay only once; run it through an agent's tool node")
    thread = runtime.config.get("configurable", {}).get("thread_id", "no-thread")
    return ":".join((str(thread), runtime.tool_call_id, number, "all" if minor is None else str(minor)))
