"""Observations decoded beforehand, for decoders with layers that the page cannot run."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.methods.base import Method
from unweave.report.explorer.data import CodeFacts, describe_pictures, to_base64

STARTS = 24  # observations from which all traversals are decoded
RECONSTRUCTED = 300  # observations that are decoded as they are
STEPS = 9  # of a traversal: the cells of the film strip
MAX_CODES = 8  # that are traversed, the strongest
PLANE_STEPS = 31  # per side, where one or two codes are all there is


def describe_grid(method: Method, codes: np.ndarray, facts: list[CodeFacts], order: list[int]) -> dict[str, Any]:
    """Return decoded observations with their codes, of which the page shows the nearest one.

    Args:
        method: A method with a decoder.
        codes: Codes of the sample, (n, d).
        facts: What is known of each code, (d,).
        order: Codes by importance, (d,).
    """
    z = grid_points(codes, facts, order)
    pictures = describe_pictures(np.asarray(method.inverse_transform(z), np.float32))
    return {"codes": to_base64(z), "count": len(z), "starts": min(STARTS, len(codes)), **pictures}


def grid_points(codes: np.ndarray, facts: list[CodeFacts], order: list[int]) -> np.ndarray:
    """Return the codes to decode, (m, d): observations, their traversals, and a plane where few codes are alive."""
    alive = [j for j in order if not facts[j].is_dead]
    parts = [codes[:RECONSTRUCTED]]
    for j in alive[:MAX_CODES]:
        line = np.repeat(codes[:STARTS, None], STEPS, axis=1)  # (starts, steps, d)
        line[:, :, j] = np.linspace(facts[j].lower, facts[j].upper, STEPS)
        parts.append(line.reshape(-1, codes.shape[1]))
    if 0 < len(alive) <= 2:
        axes = [np.linspace(facts[j].low, facts[j].high, PLANE_STEPS) for j in alive]
        values = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(alive))
        plane = np.repeat(np.median(codes, axis=0)[None], len(values), axis=0)
        plane[:, alive] = values
        parts.append(plane)
    return np.concatenate(parts).astype(np.float32)
