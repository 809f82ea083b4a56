"""Plots of the report as data: Python computes the numbers, the page draws them."""
