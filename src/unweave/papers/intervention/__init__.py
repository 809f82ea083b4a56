"""Disentanglement by intervention (2021)."""
