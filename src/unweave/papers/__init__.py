"""The five papers: one folder each."""
