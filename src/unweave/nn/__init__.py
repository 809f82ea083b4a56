"""Anatomy: shapes in, modules out. A module knows no data, no optimiser and no paper's loss."""
