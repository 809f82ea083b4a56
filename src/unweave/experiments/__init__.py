"""Runs, studies, selection."""
