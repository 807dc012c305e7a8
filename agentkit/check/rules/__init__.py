"""The rules, by what they are about. Importing this package enters them all into `agentkit.check.rule.RULES`."""

from agentkit.check.rule import RULES
from agentkit.check.rules import agents, code, fields, joins, pauses, routes, schemas, ways

__all__ = ["agents", "code", "fields", "joins", "pauses", "routes", "schemas", "ways"]

for _code in sorted(RULES):
    RULES[_code] = RULES.pop(_code)
