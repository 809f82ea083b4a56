"""Classifiers that ignore nuisances."""
