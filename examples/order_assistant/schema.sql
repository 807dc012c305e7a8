-- The shop's database. Money is in minor units (cents, fen); dates are ISO 8601.

CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE customers (
    id        TEXT PRIMARY KEY,
    name      TEXT NOT NULL,
    email     TEXT NOT NULL UNIQUE,
    locale    TEXT NOT NULL CHECK (locale IN ('en-US', 'de-DE', 'zh-CN')),
    currency  TEXT NOT NULL CHECK (currency IN ('EUR', 'USD', 'CNY')),
    address   TEXT NOT NULL,
    joined_on TEXT NOT NULL
);

CREATE TABLE products (
    sku         TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    name_zh     TEXT NOT NULL UNIQUE,
    category    TEXT NOT NULL,
    keywords    TEXT NOT NULL,
    stock       INTEGER NOT NULL CHECK (stock >= 0)
);

CREATE TABLE prices (
    sku      TEXT NOT NULL REFERENCES products (sku),
    currency TEXT NOT NULL CHECK (currency IN ('EUR', 'USD', 'CNY')),
    minor    INTEGER NOT NULL CHECK (minor > 0),
    PRIMARY KEY (sku, currency)
);

CREATE TABLE orders (
    number      TEXT PRIMARY KEY,
    customer_id TEXT NOT NULL REFERENCES customers (id),
    placed_on   TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('processing', 'shipped', 'delivered', 'cancelled')),
    currency    TEXT NOT NULL CHECK (currency IN ('EUR', 'USD', 'CNY')),
    paid_minor  INTEGER NOT NULL CHECK (paid_minor > 0)
);
CREATE INDEX orders_by_customer ON orders (customer_id, placed_on);

CREATE TABLE order_lines (
    order_number TEXT NOT NULL REFERENCES orders (number),
    position     INTEGER NOT NULL,
    sku          TEXT NOT NULL REFERENCES products (sku),
    quantity     INTEGER NOT NULL CHECK (quantity > 0),
    unit_minor   INTEGER NOT NULL CHECK (unit_minor > 0),
    PRIMARY KEY (order_number, position)
);

CREATE TABLE shipments (
    tracking_number TEXT PRIMARY KEY,
    order_number    TEXT NOT NULL UNIQUE REFERENCES orders (number),
    carrier         TEXT NOT NULL,
    shipped_on      TEXT NOT NULL,
    expected_on     TEXT NOT NULL,
    delivered_on    TEXT
);

CREATE TABLE tracking_events (
    tracking_number TEXT NOT NULL REFERENCES shipments (tracking_number),
    position        INTEGER NOT NULL,
    happened_at     TEXT NOT NULL,
    place           TEXT NOT NULL,
    event           TEXT NOT NULL CHECK (event IN
        ('picked_up', 'sorting_centre', 'customs', 'out_for_delivery', 'delivery_failed', 'delivered')),
    PRIMARY KEY (tracking_number, position)
);

CREATE TABLE reviews (
    id          INTEGER PRIMARY KEY,
    sku         TEXT NOT NULL REFERENCES products (sku),
    customer_id TEXT NOT NULL REFERENCES customers (id),
    rating      INTEGER NOT NULL CHECK (rating BETWEEN 1 AND 5),
    body        TEXT NOT NULL,
    written_on  TEXT NOT NULL,
    UNIQUE (sku, customer_id)
);

CREATE TABLE refunds (
    id              INTEGER PRIMARY KEY,
    order_number    TEXT NOT NULL REFERENCES orders (number),
    minor           INTEGER NOT NULL CHECK (minor > 0),
    reason          TEXT NOT NULL,
    created_on      TEXT NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE
);
CREATE INDEX refunds_by_order ON refunds (order_number);
