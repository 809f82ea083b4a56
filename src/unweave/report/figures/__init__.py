"""Figures of runs, methods and datasets: functions that return a matplotlib `Figure`."""
