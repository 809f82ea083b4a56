"""Data: named factors, samplers, readers, supervision and splits."""
