"""Amounts read back as they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.order_assistant.money import CURRENCIES, Money

amounts = st.builds(Money, st.integers(-(10**12), 10**12), st.sampled_from(sorted(CURRENCIES)))


@given(amounts)
def test_what_is_written_reads_back(amount: Money) -> None:
    assert Money.parse(str(amount)) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Money(0, "EUR"), "€0.00"),
        (Money(5, "USD"), "$0.05"),
        (Money(124900, "EUR"), "€1,249.00"),
        (Money(-1990, "CNY"), "-¥19.90"),
        (Money(123456789, "USD"), "$1,234,567.89"),
    ],
)
def test_people_read_it_as_usual(amount: Money, text: str) -> None:
    assert str(amount) == text


def test_thousands_marks_and_cents_may_be_missing() -> None:
    assert Money.parse("€1249") == Money.parse("€1,249.00") == Money(124900, "EUR")


@pytest.mark.parametrize("text", ["", "12.50", "€", "€12.5", "€1,24.00", "£3.00", "€ 3.00", "€--3.00"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        Money.parse(text)


def test_an_unknown_currency_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown currency 'GBP'; the shop trades in EUR, USD, CNY"):
        Money(1, "GBP")
