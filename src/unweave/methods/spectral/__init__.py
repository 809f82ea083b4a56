"""Spectral embedding in parts: neighbors, local bases, smallest eigenvectors, isometry, extension to new points."""
