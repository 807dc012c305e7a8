"""A teller that transfers money: what is above 1,000 waits for a person, also over restarts."""
