"""Pages of the documentation hold what a command has written, between two comments that name it."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def write(page: Path, name: str, text: str) -> None:
    """Put a text between `<!-- begin: NAME -->` and `<!-- end: NAME -->`.

    Raises:
        ValueError: If the page has no such place.
    """
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"bench: {page} has no place for this; put {begin} and {end} into it.")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
