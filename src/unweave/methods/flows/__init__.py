"""Normalizing flows: GIN and self-supervised GIN."""
