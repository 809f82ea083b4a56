"""Self-supervised GIN (2021)."""
