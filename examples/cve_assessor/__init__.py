"""Assesses published vulnerabilities: data and score are fetched side by side, and meet once."""
