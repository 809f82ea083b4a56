"""Swap and contrast (2022)."""
