"""Spectral methods: an embedding by the eigenvectors of an operator on the neighbor graph, then ICA.

`hessian`, `tangent` and `laplacian` define the operator; `base` has the steps, in this order: `preprocessing`,
`landmarks`, `point_cloud` (with `neighbors` and `tangent_space`), `automatic` (with `dimension` and `isometry`),
`eigensolver`, `diagnosis`; `out_of_sample` encodes new points.
"""
