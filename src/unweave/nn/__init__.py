"""Anatomy: shapes in, modules out. A module knows no data, no optimizer and no paper's loss."""
