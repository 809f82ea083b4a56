"""What data are: named factors, samplers, readers, supervision."""
