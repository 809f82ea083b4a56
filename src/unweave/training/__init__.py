"""The training loop and its parts.

- Pack: methods that are trained together. They differ only in their seed and in fields annotated `Lane`.
- Lane: one model of a pack, with its own weights, random generator and values of those fields.
- Group: the lanes that take a step in one call: a whole pack, stacked, or a single model (`LaneGroup`).
- Chunk: the plans and the noise of many steps (at most 100), sampled at once.
- Strategy: how the groups take their steps: `loop`, `stack` or `fork`, compiled or not.
"""
