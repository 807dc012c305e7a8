"""Write the page of every check into docs/checks/, from the rules themselves: python scripts/check_pages.py

`--verify` writes nothing, names the pages that are not as the rules say, and ends with 1 if there are any.
"""

import sys
from pathlib import Path

from agentkit.check import RULES

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "checks"


def pages() -> dict[str, str]:
    """Every page by its file name."""
    rows = [
        f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.severity} | {rule.summary} |" for rule in RULES.values()
    ]
    table = "\n".join(["| code | name | severity | what is wrong |", "|---|---|---|---|", *rows])
    return {"rules.md": f"# All checks\n\n{table}\n"} | {f"{rule.code}.md": rule.page for rule in RULES.values()}


def stale() -> list[str]:
    """The names of pages that are missing, differ, or belong to no rule."""
    there = {path.name: path.read_text() for path in FOLDER.glob("*.md") if path.name != "index.md"}
    wanted = pages()
    return sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))


def main(verify: bool) -> None:
    """Write the pages, or say which are stale."""
    if verify:
        if names := stale():
            sys.exit(f"stale: {', '.join(names)}; run python scripts/check_pages.py")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale():
        path = FOLDER / name
        if name in pages():
            path.write_text(pages()[name])
        else:
            path.unlink()


if __name__ == "__main__":
    main("--verify" in sys.argv[1:])
