"""One page to explore a fitted method: move its codes and see the decoded data, without a server."""
