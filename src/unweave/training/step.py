"""One step of training: the loss's gradients, Adam, history; for one model or a stack, compiled or not."""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.flop_counter import FlopCounterMode

from unweave.data.core import FactorData
from unweave.nn.conv_matmul import has_replaceable_convs, replace_convs
from unweave.training.adam import adam, assign_optimizers, clip_gradients
from unweave.training.pack import Batch, LaneGroup, State, Trainable
from unweave.utils.errors import InputError

Step = Callable[[State, Batch], None]

BACKEND = "inductor"
JOINING: dict[str, Any] = {
    "max_pointwise_cat_inputs": 1
}  # parts are written where they belong: choosing one for every number is slow
MOST_COMPILED = 16  # steps that are kept
_COMPILED: dict[tuple[Any, ...], Step] = {}


class _Objective(nn.Module):
    """Lets `functional_call` reach `method.loss(net, batch)`."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, method: Trainable, batch: Batch) -> dict[str, Tensor]:
        return method.loss(self.net, batch)


def evaluate(
    method: Trainable,
    objective: nn.Module,
    names: Sequence[str],
    params: Batch,
    buffers: Batch,
    hyper: Batch,
    batch: Batch,
) -> dict[str, Tensor]:
    """All terms of one model's loss; `names` are those of the method's attributes."""
    weights = {f"net.{k}": v for k, v in (params | buffers).items()}
    kind = next(iter(params.values())).device.type
    with torch.autocast(kind, dtype=torch.bfloat16, enabled=method.precision == "bf16"):
        terms: dict[str, Tensor] = functional_call(objective, weights, (method.on_lane(hyper, names), batch))
    return {k: v.float() for k, v in terms.items()}


def make_step(method: Trainable, net: nn.Module, stacked: bool, window: int, *, traced: bool = False) -> Step:
    """One step of one model, or of a stack: gradients, Adam, history; all in place."""
    objective = _Objective(replace_convs(net) if stacked else net)
    names = tuple(vars(method))
    owner = assign_optimizers(dict(net.named_parameters()), method.optimizers())

    def value(params: Batch, *rest: Any) -> tuple[Tensor, dict[str, Tensor]]:
        terms = evaluate(method, objective, names, params, *rest)
        return terms["loss"], terms

    def taped(params: Batch, *rest: Any) -> tuple[Batch, dict[str, Tensor]]:
        """The same by the tape: with no compiler in between, `grad` takes three times as long."""
        leaves = {k: p.detach().requires_grad_() for k, p in params.items()}
        loss, terms = value(leaves, *rest)
        found = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
        return dict(zip(leaves, found, strict=True)), terms

    gradients = grad(value, has_aux=True) if stacked or traced else taped
    every = vmap(gradients, in_dims=0) if stacked else gradients

    def step(state: State, batch: Batch) -> None:
        count = state["step"].add_(1)  # whole numbers, since a quotient of floats may fall short of the next row
        t = count.float()
        progress = ((t - 1) / method.steps).expand(state["failed"].shape)
        batch = batch | {"progress": progress}
        grads, terms = every(state["params"], state["buffers"], state["hyper"], batch)
        if method.clip:
            grads = clip_gradients(grads, method.clip, lead=int(stacked))
        rates = {
            k: rate.at_progress(progress) for k, rate in method.on_lane(state["hyper"], names).optimizers().items()
        }
        adam(state["params"], grads, state["first"], state["second"], t, rates, owner)
        values = torch.stack([v.detach() for v in terms.values()], -1)  # (lanes?, terms)
        row = ((count - 1) // window).reshape(1)
        state["log"].index_add_(-2, row, values[..., None, :])
        state["terms"].copy_(values)
        first_bad = (state["failed"] == 0) & ~terms["loss"].detach().isfinite()
        state["failed"].copy_(torch.where(first_bad, t, state["failed"]))

    return step


def compiled_step(method: Trainable, net: nn.Module, stacked: bool, window: int, models: int) -> Step:
    """The step as one graph; kept for the next pack of so many models of the same signature."""
    method = copy.copy(method)
    device = next(net.parameters()).device.type
    key = (type(method), method.signature(), prepared_key(method), models, stacked, window, device, BACKEND)
    if key not in _COMPILED:
        dynamo = torch._dynamo.config
        dynamo.recompile_limit = max(dynamo.recompile_limit, 1_000)  # all steps are one piece of code to it
        step = make_step(method, copy.deepcopy(net), stacked, window, traced=True)
        if len(_COMPILED) == MOST_COMPILED:
            _COMPILED.pop(next(iter(_COMPILED)))
        options = JOINING if BACKEND == "inductor" and stacked and has_replaceable_convs(net) else None
        _COMPILED[key] = torch.compile(step, fullgraph=True, dynamic=False, backend=BACKEND, options=options)
    return _COMPILED[key]


def prepared_key(method: Trainable) -> str:
    """What `prepare` has set, so far as the loss can compute with it."""
    found = {}
    for name, value in sorted(vars(method).items()):
        if name == "feature_names_in_":
            continue
        if name.endswith("_") and isinstance(value, Tensor | np.ndarray):
            found[name] = hashlib.sha256(torch.as_tensor(value).cpu().numpy().tobytes()).hexdigest()
        elif name.endswith("_") and not _words(value):
            found[name] = repr(value)
    return repr(found)


def _words(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))


def inspect_loss(
    method: Trainable, net: nn.Module, data: FactorData, *, counting: bool = True
) -> tuple[list[str], float]:
    """The names of the loss's terms, and the floating-point operations of a step; not counted, 0."""
    part = LaneGroup([method], [net], data, stacked=False)
    batch = part.batch(part.draw(1), 0) | {"progress": torch.zeros((), device=part.device)}
    state = part.state
    weights = state["params"], state["buffers"], state["hyper"]
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter if counting else contextlib.nullcontext():
        terms = evaluate(method, _Objective(net), tuple(vars(method)), *weights, batch)
    if "loss" not in terms or any(v.shape != () for v in terms.values()):
        shapes = {k: tuple(v.shape) for k, v in terms.items()}
        raise InputError(f"{method.name}.loss gave {shapes}: expected scalars, one of them called 'loss'")
    return list(terms), 3.0 * counter.get_total_flops() if counting else 0.0  # the way back costs twice the way there
