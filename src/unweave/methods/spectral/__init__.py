"""Spectral embedding in parts: neighbours, local bases, smallest eigenvectors, isometry, extension to new points."""
