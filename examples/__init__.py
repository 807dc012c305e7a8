"""Runnable examples, one package each."""
