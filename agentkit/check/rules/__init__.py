"""The rules, by what they are about. Importing this package enters them all into `agentkit.check.rule.RULES`."""

from agentkit.check.rules import agents, code, fields, joins, pauses, routes, ways

__all__ = ["agents", "code", "fields", "joins", "pauses", "routes", "ways"]
