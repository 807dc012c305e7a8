"""Measurements that need more than a test: recorded conversations, and a classic loop to compare with."""
