"""An order assistant on a real SQLite database: the example bot. Run it with `python -m examples.order_assistant`."""
