"""Errors, atomic files, locks, validation."""
