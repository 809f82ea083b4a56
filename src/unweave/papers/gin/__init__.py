"""GIN (Sorrenson et al., 2020)."""
