"""Fused CUDA kernels for the image flow of GIN."""
