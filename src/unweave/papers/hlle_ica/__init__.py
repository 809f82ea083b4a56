"""HLLE+ICA (Horan et al., 2021)."""
