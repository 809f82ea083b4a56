"""Networks and formulas: shapes in, modules out. Nothing here knows data, optimizers or methods."""
