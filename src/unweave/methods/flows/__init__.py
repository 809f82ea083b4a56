"""Normalizing flows: GIN and self-supervised GIN.

`gin` and `self_supervised_gin` define the losses; `base` has the network and its outputs. `families` are the
distributions of latent variables, `knee` finds the informative ones, `labels` and `class_statistics` belong to GIN,
`features` and `class_diagnosis` report what the data allow.
"""
