"""Print the oldest version of each dependency that pyproject.toml claims to work with, as pip constraints.

Reads `dependencies` and the extras a user installs; the extras for developers (`test`, `lint`, ...) are left out,
because their age is nobody's promise. Needs only the standard library, so it runs before anything is installed.
"""

import re
import sys
import tomllib
from pathlib import Path

DEVELOPERS = {"test", "lint", "docs", "dev"}
LOWEST = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*>=\s*(?P<version>[0-9][0-9.]*)")


def lowest(project: dict[str, list[str] | dict[str, list[str]]]) -> list[str]:
    """Turn the `[project]` table into lines such as `langchain==1.5`; a dependency without `>=` is an error."""
    extras = project.get("optional-dependencies", {})
    assert isinstance(extras, dict)
    wanted = [*project["dependencies"], *(line for name in sorted(extras.keys() - DEVELOPERS) for line in extras[name])]
    pins = set()
    for line in wanted:
        if line.startswith("agentkit["):
            continue  # one extra naming another
        match = LOWEST.match(line)
        if match is None:
            sys.exit(f"{line!r} has no lower bound of the form name>=version; give it the oldest version tested")
        pins.add(f"{match['name']}=={match['version']}")
    return sorted(pins)


if __name__ == "__main__":
    text = Path(__file__).resolve().parent.parent.joinpath("pyproject.toml").read_text()
    print("\n".join(lowest(tomllib.loads(text)["project"])))
