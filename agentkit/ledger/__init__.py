"""The record of effects: what each writing tool call did, so that none is done twice and none is lost unnoticed.

`agentkit.middleware.EffectLedger` keeps it; see there. Needs the extra `sqlite` or `postgres`.
"""

from agentkit.ledger.entries import Call, Claim, Doubt, Effect, Found, Settlement, Status
from agentkit.ledger.store import Ledger, Transaction

__all__ = ["Call", "Claim", "Doubt", "Effect", "Found", "Ledger", "Settlement", "Status", "Transaction"]
