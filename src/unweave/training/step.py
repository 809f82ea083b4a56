"""One training step: gradients of the loss, Adam, history; for one model or a stack, compiled or not."""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.flop_counter import FlopCounterMode

from unweave.data.core import FactorData
from unweave.nn import lane_conv
from unweave.nn.conv_matmul import has_replaceable_convs, replace_convs
from unweave.training.adam import State, adam_step, assign_optimizers, clip_gradients, update_averages
from unweave.training.compile_cache import cacheable_functions, mark_compiled, use_compile_folder
from unweave.training.pack import Batch, LaneGroup, Step, Trainable
from unweave.utils.errors import InputError
from unweave.utils.storage import source_hash

BACKEND = "inductor"  # of torch.compile
MAX_COMPILED_STEPS = 16  # compiled steps kept for later packs of the same signature
# By default, one kernel chooses for every number of a concatenation which input it comes from. Copying is faster.
STACKED_CONV_OPTIONS: dict[str, Any] = {"max_pointwise_cat_inputs": 1}
BACKWARD_COST = 2.0  # operations of the backward pass, relative to the forward pass
_COMPILED: dict[tuple[Any, ...], Step] = {}


class _Objective(nn.Module):
    """Lets `functional_call` reach `method.loss(net, batch)`, with products in bf16 or not."""

    def __init__(self, net: nn.Module, *, bf16: bool) -> None:
        super().__init__()
        self.net, self.bf16, self.device_type = net, bf16, network_device(net).type

    def forward(self, method: Trainable, batch: Batch) -> dict[str, Tensor]:
        with torch.autocast(self.device_type, dtype=torch.bfloat16, enabled=self.bf16):
            return method.loss(self.net, batch)


def network_device(net: nn.Module) -> torch.device:
    """Return the device of a network's first parameter."""
    return next(net.parameters()).device


def has_convs(net: nn.Module) -> bool:
    """Return whether a network has convolutions of images."""
    return any(isinstance(module, nn.Conv2d | nn.ConvTranspose2d) for module in net.modules())


def uses_bf16(method: Trainable, net: nn.Module) -> bool:
    """Return whether products are in bf16: by default those of convolutional networks on a GPU that has it."""
    if method.precision != "auto":
        return bool(method.precision == "bf16")
    on_gpu = network_device(net).type == "cuda"
    return on_gpu and has_convs(net) and torch.cuda.is_bf16_supported(including_emulation=False)


def evaluate_loss(
    method: Trainable,
    objective: nn.Module,
    names: Sequence[str],
    params: Batch,
    buffers: Batch,
    lane_values: Batch,
    batch: Batch,
) -> dict[str, Tensor]:
    """Compute all terms of one model's loss; `names` are those of the method's attributes."""
    weights = {f"net.{k}": v for k, v in (params | buffers).items()}
    terms: dict[str, Tensor] = functional_call(objective, weights, (method.on_lane(lane_values, names), batch))
    return {k: v.float() for k, v in terms.items()}


def make_step(method: Trainable, net: nn.Module, stacked: bool, *, traced: bool = False) -> Step:
    """Return the function that takes one step of a model, or of a stack of models.

    Args:
        method: Any of the models, which differ in tensors only.
        net: Its network.
        stacked: Whether the tensors have a first axis for the lanes.
        traced: Whether the compiler will trace the step.
    """
    bf16 = uses_bf16(method, net)
    use_triton = traced and lane_conv.is_available(network_device(net))
    objective = _Objective(replace_convs(net, use_triton=use_triton and bf16) if stacked else net, bf16=bf16)
    names = tuple(vars(method))
    prefix_of = assign_optimizers(dict(net.named_parameters()), method.optimizers())

    def loss_and_terms(params: Batch, *rest: Any) -> tuple[Tensor, dict[str, Tensor]]:
        terms = evaluate_loss(method, objective, names, params, *rest)
        return terms["loss"], terms

    def eager_gradients(params: Batch, *rest: Any) -> tuple[Batch, dict[str, Tensor]]:
        """Use autograd directly: without a compiler, `torch.func.grad` takes three times as long."""
        leaves = {k: p.detach().requires_grad_() for k, p in params.items()}
        loss, terms = loss_and_terms(leaves, *rest)
        grads = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
        return dict(zip(leaves, grads, strict=True)), terms

    gradients = grad(loss_and_terms, has_aux=True) if stacked or traced else eager_gradients
    if stacked:
        gradients = vmap(gradients, in_dims=0)

    def step(state: State, batch: Batch) -> None:
        count = state["step"].add_(1)
        t = count.float()
        progress = ((t - 1) / state["steps"]).expand(state["failed"].shape)
        batch = batch | {"progress": progress}
        grads, terms = gradients(state["params"], state["buffers"], state["lane_values"], batch)
        if method.clip:
            grads = clip_gradients(grads, method.clip, lane_axes=int(stacked))
        settings = method.on_lane(state["lane_values"], names).optimizers()
        optimizers = {prefix: adam.at_progress(progress, method.lr_schedule) for prefix, adam in settings.items()}
        moments = state["first_moments"], state["second_moments"]
        adam_step(state["params"], grads, *moments, t, optimizers, prefix_of, use_triton=use_triton)
        if method.weight_average:
            update_averages(state["averages"], state["params"], t, method.weight_average)
        _record_terms(state, terms)

    return step


def _record_terms(state: State, terms: dict[str, Tensor]) -> None:
    """Add the terms to the history, and remember the first step at which the loss was not finite."""
    values = torch.stack([v.detach() for v in terms.values()], -1)  # (lanes?, terms)
    row = ((state["step"] - 1) // state["window"]).reshape(1)  # of integers: a quotient of floats may be rounded down
    state["log"].index_add_(-2, row, values[..., None, :])
    state["terms"].copy_(values)
    fails_now = (state["failed"] == 0) & ~terms["loss"].detach().isfinite()
    state["failed"].copy_(torch.where(fails_now, state["step"].float(), state["failed"]))


def compiled_step(method: Trainable, net: nn.Module, stacked: bool, models: int) -> Step:
    """Return the step as one compiled graph, reused for packs of as many models of the same signature."""
    method = copy.copy(method)
    device = network_device(net).type
    key = (type(method), method.pack_signature(), prepared_key(method), models, stacked, device, BACKEND)
    if key not in _COMPILED:
        use_compile_folder()
        dynamo = torch._dynamo.config
        dynamo.recompile_limit = max(dynamo.recompile_limit, 1_000)  # all steps are the same code to the compiler
        step = make_step(method, copy.deepcopy(net), stacked, traced=True)
        if len(_COMPILED) == MAX_COMPILED_STEPS:
            _COMPILED.pop(next(iter(_COMPILED)))
        options = _compile_options(stacked and has_replaceable_convs(net)) if BACKEND == "inductor" else None
        compiled = torch.compile(step, fullgraph=True, dynamic=False, backend=BACKEND, options=options)
        _COMPILED[key] = _mark_after(compiled, step_key(method, models, stacked=stacked))
    return _COMPILED[key]


def _compile_options(has_stacked_convs: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"unsafe_marked_cacheable_functions": cacheable_functions()}
    return options | STACKED_CONV_OPTIONS if has_stacked_convs else options


def step_key(method: Trainable, models: int, *, stacked: bool) -> tuple[Any, ...]:
    """Return what identifies a compiled step in the cache; runs of other lengths share it."""
    signature = {k: v for k, v in method.recipe().items() if k not in {*method.lane_names(), "seed", "steps"}}
    return source_hash(type(method)), signature, method.shape_, prepared_key(method), models, stacked


def _mark_after(step: Step, key: tuple[Any, ...]) -> Step:
    """Return a step that is remembered as compiled after its first call."""
    is_marked = False

    def marked(state: State, batch: Batch) -> None:
        nonlocal is_marked
        step(state, batch)
        if not is_marked:
            mark_compiled(key)
            is_marked = True

    return marked


def prepared_key(method: Trainable) -> str:
    """Return a text that identifies the values set by `prepare` with which the loss can compute; texts are left out."""
    values = {}
    for name, value in sorted(vars(method).items()):
        if name == "feature_names_in_" or not name.endswith("_"):
            continue
        if isinstance(value, Tensor | np.ndarray):
            values[name] = hashlib.sha256(torch.as_tensor(value).cpu().numpy().tobytes()).hexdigest()
        elif not _is_text(value):
            values[name] = repr(value)
    return repr(values)


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))


class LossFacts(NamedTuple):
    """What one evaluation of a loss shows."""

    terms: list[str]
    """Names of the terms."""
    flops: float
    """Floating-point operations of a step; 0 if they were not counted."""
    layer_flops: float
    """Those of linear layers and convolutions alone, which are counted without delay."""


def inspect_loss(method: Trainable, net: nn.Module, data: FactorData, *, count_flops: bool = True) -> LossFacts:
    """Evaluate the loss once.

    Raises:
        InputError: If the terms are not scalars, or none is called 'loss'.
    """
    group = LaneGroup([method], [net], data, stacked=False)
    batch = group.batch(group.sample_chunk(1), 0) | {"progress": torch.zeros((), device=group.device)}
    weights = group.state["params"], group.state["buffers"], group.state["lane_values"]
    objective = _Objective(net, bf16=uses_bf16(method, net))
    counter = FlopCounterMode(display=False)
    layers: list[float] = []
    hooks = [module.register_forward_hook(partial(_count_layer, layers)) for module in net.modules()]
    try:
        with torch.no_grad(), counter if count_flops else contextlib.nullcontext():
            terms = evaluate_loss(method, objective, tuple(vars(method)), *weights, batch)
    finally:
        for hook in hooks:
            hook.remove()
    if "loss" not in terms or any(v.shape != () for v in terms.values()):
        shapes = {k: tuple(v.shape) for k, v in terms.items()}
        raise InputError(f"{method.name}.loss gave {shapes}: expected scalars, one of them called 'loss'")
    cost = 1 + BACKWARD_COST
    return LossFacts(list(terms), cost * counter.get_total_flops() if count_flops else 0.0, cost * sum(layers))


def _count_layer(counts: list[float], module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
    """Append the operations of a linear layer or a convolution: two per weight and position."""
    if isinstance(module, nn.Linear):
        counts.append(2 * module.weight.numel() * output.numel() / module.out_features)
    elif isinstance(module, nn.ConvTranspose2d):  # every input is multiplied by a kernel
        counts.append(2 * module.weight.numel() * inputs[0].numel() / module.in_channels)
    elif isinstance(module, nn.Conv2d):
        counts.append(2 * module.weight.numel() * output.numel() / module.out_channels)
