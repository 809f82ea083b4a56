"""One file per kind of figure: arrays of a run in, a matplotlib Figure out. No pyplot, so no global state."""
