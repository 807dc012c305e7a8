"""English."""

from __future__ import annotations

import re
from datetime import date

from examples.order_assistant.planner.phrases import Phrases, alternatives

__all__ = ["ENGLISH"]

_ORDER_OR_PRONOUN = r"(?:it|this|that|the|my|order)\b"


def _day(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


ENGLISH = Phrases(
    goals=(
        ("policy", alternatives(r"\b(?:refund|return)s? (?:polic|rule|condition)", r"how long .*\b(?:refund|return)")),
        (
            "compare",
            alternatives(r"\bcompar", r"\b(?:vs|versus)\b", r"\bwhich\b.*\bbetter\b", r"\bdifference between\b"),
        ),
        ("reviews", alternatives(r"\breviews?\b", r"\bratings?\b", r"\b(?:say|think) (?:about|of)\b", r"\bany good\b")),
        (
            "refund",
            alternatives(
                r"\brefund", r"\bmoney back\b", rf"\breturn {_ORDER_OR_PRONOUN}", r"\bcancel", r"\bsend\b.*\bback\b"
            ),
        ),
        (
            "track",
            alternatives(
                r"\bwhere(?:'s| is| are)\b",
                r"\btrack",
                r"\b(?:parcel|package|shipment|shipping|logistics)\b",
                r"\bdeliver",
                r"\barriv",
                r"\bwhen will\b",
            ),
        ),
        ("history", alternatives(r"\bmy orders\b", r"\border history\b", r"\b(?:all|list|which)\b.*\borders\b")),
        (
            "latest",
            alternatives(
                r"\b(?:latest|last|newest|recent) (?:order|purchase)", r"\bwhat did i (?:just )?(?:order|buy)"
            ),
        ),
        (
            "order",
            alternatives(
                r"\b(?:that|this|the|my) order\b",
                r"\border (?:details|number)\b",
                r"\b(?:was|is|what's) in (?:it|there)\b",
                r"\bhow much\b",
            ),
        ),
        (
            "profile",
            alternatives(r"\bwho am i\b", r"\bmy (?:account|profile|address|details|name|e-?mail)\b", r"\babout me\b"),
        ),
        ("reviews", alternatives(r"\btell me (?:more )?about\b")),
        (
            "help",
            alternatives(
                r"\bhelp\b(?! me (?:find|search))", r"\bwhat can you\b", r"\bhow do(?:es)? (?:this|you) work\b"
            ),
        ),
        (
            "search",
            alternatives(
                r"\bsearch",
                r"\bfind\b",
                r"\blook(?:ing)? for\b",
                r"\bshow me\b",
                r"\b(?:have you|you) (?:got|have|sell)\b",
                r"\bi(?:'d| would)? (?:want|need|like)\b",
                r"\bbuy\b",
                r"\brecommend",
                r"\bgot any\b",
            ),
        ),
        ("bye", alternatives(r"\b(?:good)?bye\b", r"\bsee you\b", r"\bthat'?s (?:all|it)\b", r"^(?:quit|exit)$")),
        ("thanks", alternatives(r"\bthank", r"\bthx\b", r"\bcheers\b")),
        ("greet", alternatives(r"^(?:hi|hello|hey)\b", r"^good (?:morning|afternoon|evening|day)\b")),
    ),
    yes=re.compile(
        r"(?:yes|yep|yeah|sure|ok|okay|confirm|confirmed|correct|right|go ahead|do it|please do)"
        r"(?:[\s,]+(?:please|do it|do that|go ahead|thanks|thank you|refund it|that's right|(?:i )?confirm(?:ed)?))*"
        r"[\s.!]*",
        re.IGNORECASE,
    ),
    no=alternatives(r"^(?:no|nope|don'?t|do not|never ?mind|cancel|stop|leave it|not now|rather not)\b"),
    latest=alternatives(r"\b(?:latest|last|newest|most recent)\b"),
    query=re.compile(
        r"(?:search(?: for)?|find(?: me)?|look(?:ing)? for|show me|(?:have you|you) (?:got|have|sell)"
        r"|i(?:'d| would)? (?:want|need|like)(?: to buy)?|buy|recommend(?: me)?|got any)\s+(?P<query>.+)",
        re.IGNORECASE,
    ),
    product_noise=alternatives(
        r"^.*\b(?:reviews?|ratings?)\s+(?:of|for|on|about)\b",
        r"^.*\b(?:say|think)\s+(?:about|of)\b",
        r"^.*\bcompare\b",
        r"^.*\bdifference between\b",
        r"^.*\bbetter\b(?:\s+(?:reviews?|ratings?|rated|liked|one))?",
        r"^(?:(?:so|and|but|ok|hi|hello|then|please|what|how|about|are|is|do|show|tell|give|read|see|me|more|can|could|you"
        r"|would|i|want|to|like)\b\s*)+",
        r"\b(?:any|so) good\b.*$",
        r"(?:'s)?\b(?:reviews?|ratings?)\b.*$",
        r"\bplease\b",
        r"\b(?:the|a|an)\b",
        r"[?!.:\"“”]",
    ),
    product_split=re.compile(r"\s*,\s*(?:and|or)?\s*|\s+(?:and|or|with|to|vs\.?|versus|against)\s+", re.IGNORECASE),
    pronoun=re.compile(
        r"(?:its?|this|that|them|their|these|those|both|both of them|ones?|two|first|(?:first|these|those) two)?",
        re.IGNORECASE,
    ),
    name_key="name",
    stop=". ",
    day=_day,
    say={
        "greet": "Hello! I can look after your orders: where they are, what was in them, refunds, and what our "
        "products are like. What would you like to know?",
        "help": "Here is what I can do:\n"
        "- show your latest order, or any of your orders by number\n"
        "- tell you where a parcel is\n"
        "- find products and compare what buyers say about them\n"
        "- refund an order or a part of it, once you have confirmed\n"
        "Try “Where is my latest order?” or “Compare the Aurora Headphones and the Nimbus Earbuds”.",
        "policy": "An order that has not left us can be refunded at any time. Once it is on its way it has to arrive "
        "first; after that you have 30 days, for all of it or a part.",
        "thanks": "You're welcome. Is there anything else?",
        "bye": "Goodbye, and thank you for shopping with us!",
        "unknown": "I'm afraid I did not understand that. I know about orders, parcels, refunds, products and reviews; "
        "for example “Where is my latest order?”, “Show me headphones” or “Refund order ORD-12345”.",
        "no_tool": "I can't do that here: this assistant runs without the tool “{tool}”.",
        "which_product": "Which product do you mean? Give me its name, or search first: “Show me headphones”.",
        "which_two": "Which products shall I compare? For example “Compare the Ember Kettle and the Breeze Toaster”.",
        "what_query": "What are you looking for? For example “Show me headphones”.",
        "profile": "You are {name} ({id}), customer since {joined}.\nE-mail: {email}\nAddress: {address}",
        "history": "Your latest orders:",
        "history_row": "- {number}, {placed}: {status}",
        "no_history": "You have not ordered anything yet.",
        "order": "Order {number} of {placed}: {status}.",
        "line": "- {quantity} × {name}: {total}",  # noqa: RUF001
        "paid": "Paid: {paid}",
        "refunded": "Refunded so far: {refunded}",
        "not_shipped": "Order {number} has not left us yet: it is {status}. It has no tracking number so far.",
        "track": "Order {number} went out with {carrier} on {shipped}; the tracking number is {tracking}.",
        "event": "- {at}, {place}: {event}",
        "expected": "It should arrive by {expected}.",
        "delivered": "It was delivered on {delivered}.",
        "found": "Here is what I found:",
        "product": "- {name}, {price} ({stock})",
        "in_stock": "in stock",
        "sold_out": "sold out",
        "nothing_found": "I found nothing for “{query}”.",
        "ask_reviews": "Shall I show the reviews of one, or compare them?",
        "rating": "{name} ({price}): {average} out of 5 from {count} reviews.",
        "unrated": "{name} ({price}) has no reviews yet.",
        "review": "- {stars} “{body}”",
        "better": "Buyers like the {name} best: {average} against {others}.",
        "even": "Buyers like them equally well: {average} out of 5.",
        "confirm_all": "Shall I refund {amount} for order {number}? That is all of it{left}. Please answer yes or no.",
        "left": " that is left",
        "confirm_part": "Shall I refund {amount} of the {most} for order {number}? Please answer yes or no.",
        "too_high": "At most {most} can be refunded for order {number}. How much shall it be?",
        "other_currency": "Order {number} was paid in {currency}. How much of the {most} shall I refund?",
        "refund_done": "Done: I have refunded {amount} for order {number} (refund {refund}). You will see the money in "
        "3 to 5 working days.",
        "declined": "All right, I have not refunded anything.",
        "nothing_pending": "Nothing is waiting for your confirmation. What would you like me to do?",
    },
    errors={
        "order_not_found": "I can't find order {number} among your orders. Please check the number; it looks like "
        "ORD-12345.",
        "no_orders": "You have not ordered anything yet.",
        "no_customer": "You are not signed in, so I can't look at any orders.",
        "customer_not_found": "I can't find your account.",
        "already_refunded": "Order {number} has already been refunded in full.",
        "in_transit": "Order {number} is on its way, so I can't refund it yet. Once it has arrived you have 30 days.",
        "too_late": "Order {number} was delivered more than 30 days ago, so I can no longer refund it.",
        "product_not_found": "I don't know a product called “{product}”.",
        "product_ambiguous": "“{product}” fits more than one product. Please give me its full name.",
        "empty_query": "What are you looking for? For example “Show me headphones”.",
        "not_executed": "The shop did not consent, so nothing has been paid back.",
        "other": "That did not work: {text}",
    },
    status={
        "processing": "being prepared",
        "shipped": "on its way",
        "delivered": "delivered",
        "cancelled": "cancelled",
    },
    event={
        "picked_up": "picked up by the carrier",
        "sorting_centre": "at the sorting centre",
        "customs": "at customs",
        "out_for_delivery": "out for delivery",
        "delivery_failed": "delivery failed, nobody at home; they will try again",
        "delivered": "delivered",
    },
)
