"""The invented people, products, places and phrases that `seed.py` builds the shop from; see also `data/`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "CARRIERS",
    "CUSTOMERS",
    "DEMO_ORDERS",
    "HUBS",
    "IMPORT_HUBS",
    "PRODUCTS",
    "REVIEWS",
    "DemoOrder",
    "Person",
    "Product",
]


class Person(NamedTuple):
    """A customer; ids count up from C-1001 in the order of the table."""

    name: str
    email: str
    locale: str
    currency: str
    address: str


class Product(NamedTuple):
    """A product with its price in minor units per currency and how well people like it (1 to 5)."""

    sku: str
    name: str
    name_zh: str
    category: str
    keywords: str
    eur: int
    usd: int
    cny: int
    liked: int


class DemoOrder(NamedTuple):
    """An order that is the same in every seeding; days count back from the reference date."""

    customer_id: str
    days_ago: int
    state: str
    lines: tuple[tuple[str, int], ...]
    refunded: str = "no"


def _rows(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / "data" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


CUSTOMERS = tuple(Person(**row) for row in _rows("customers"))

PRODUCTS = tuple(
    Product(
        **{key: row[key] for key in ("sku", "name", "name_zh", "category", "keywords")},
        eur=int(row["eur"]),
        usd=int(row["usd"]),
        cny=int(row["cny"]),
        liked=int(row["liked"]),
    )
    for row in _rows("products")
)

# What each demo customer can try: a parcel on its way, one fresh refund, one too late, one spent already.
DEMO_ORDERS = (
    DemoOrder("C-1001", 3, "shipped", (("AU-101", 1), ("OF-305", 2))),
    DemoOrder("C-1001", 20, "delivered", (("KI-201", 1), ("KI-203", 2))),
    DemoOrder("C-1001", 67, "delivered", (("OF-303", 1),)),
    DemoOrder("C-1001", 116, "delivered", (("OU-402", 3),), "full"),
    DemoOrder("C-1002", 1, "processing", (("OF-301", 1), ("OF-302", 1))),
    DemoOrder("C-1002", 9, "failed", (("HO-505", 1),)),
    DemoOrder("C-1002", 24, "delivered", (("KI-202", 1),), "part"),
    DemoOrder("C-1003", 4, "customs", (("AU-104", 1),)),
    DemoOrder("C-1003", 13, "delivered", (("OU-401", 1), ("OU-402", 2))),
    DemoOrder("C-1003", 88, "delivered", (("HO-501", 2),)),
)

CARRIERS = {
    "en-US": ("UPS", "FedEx", "USPS"),
    "de-DE": ("DHL", "Hermes", "DPD"),
    "zh-CN": ("顺丰速运", "中通快递", "京东物流"),
}

HUBS = {
    "en-US": ("Reno, NV", "Salt Lake City, UT", "Portland, OR"),
    "de-DE": ("Leipzig", "Hagen", "Köln"),
    "zh-CN": ("深圳", "长沙", "杭州"),
}

IMPORT_HUBS = {
    "en-US": ("Shenzhen, China", "Los Angeles, CA"),
    "de-DE": ("Shenzhen, China", "Leipzig"),
    "zh-CN": ("德国汉堡", "上海"),
}
"""Where a parcel from abroad is picked up and cleared by customs."""

REVIEWS = {
    (locale, liked): tuple(
        row["sentence"] for row in _rows("reviews") if (row["locale"], row["liked"]) == (locale, liked)
    )
    for locale in CARRIERS
    for liked in ("good", "fair", "bad")
}
"""Review sentences by the writer's locale and how much they liked the product."""
