"""Translators of the intervention autoencoder: how hard is it to learn what exchanging a feature does? L_diff.

Pairs of images (u, v) differ in one feature k, whose values are a and b: those of two observations of the batch. A
translator learns v from u on the pairs of the observations x, and is scored on those of x_r. Functions take the method,
its network, the codes of x and x_r, (n, K D) each, the codes of feature k, and the weight of their gradient to encoder
and decoder. All of them can be mapped over lanes, compiled, and captured as a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad

from unweave.nn.autoencoder import LayerSizes, build_encoder
from unweave.nn.functional import apply_frozen, scale_gradient
from unweave.nn.ridge import predict_by_ridge
from unweave.training.adam import clip_gradients

DiffMode = Literal["data", "steps", "persistent", "ridge", "random-features", "off"]
LOGIT_MARGIN = 1e-3  # translated pixels are clamped to [margin, 1 - margin] before their logits are taken
MAX_GRADIENT_NORM = 100.0  # of the translator's steps, since a loss in nats per image is large


def network_difficulty(method: Any, net: Any, z: Tensor, z_r: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
    """Return L_diff, Algorithm 1: the translation loss on fresh pairs after s steps on other pairs.

    The images of a pair differ in one feature, whose values a and b are those of two observations. The initial
    weights of the translator are trained by the same loss. `weight` scales the gradient to encoder and decoder.
    """
    a, b = z_r[:1], z_r[1:2]
    first_order = method.diff_mode == "data"
    decoder = (lambda c: apply_frozen(net.decoder, c.detach())) if first_order else net.decoder
    u, v = scale_gradient(method.decoder_mean(decoder(set_feature(z, a, b, mask))), weight).chunk(2)
    initial = dict(net.translator.named_parameters())
    theta = {name: p.detach() for name, p in initial.items()} if first_order else initial
    slopes = grad(partial(translation_loss, method, net.translator))
    for _ in range(method.inner_steps):
        gradient = slopes(theta, u, v)
        gradient = clip_gradients(gradient, MAX_GRADIENT_NORM, lane_axes=0)
        theta = {name: p - method.inner_lr * gradient[name] for name, p in theta.items()}
    if first_order:  # the gradient at the end of the steps is taken as that at their start
        theta = {name: p.detach() + (initial[name] - initial[name].detach()) for name, p in theta.items()}
    u, v = scale_gradient(method.decoder_mean(net.decoder(set_feature(z_r, a, b, mask))), weight).chunk(2)
    return translation_loss(method, net.translator, theta, u, v)


def ridge_difficulty(method: Any, net: Any, z: Tensor, z_r: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
    """Return L_diff for the best linear translator, without the entropy of the images.

    With pairs (u, v) of the batch and fresh pairs (u', v'): v^ = v_mean + K(u', u) (K(u, u) + r I)^-1 (v - v_mean),
    K(a, b) = <a - u_mean, b - u_mean>, r = 0.01 mean diag K. A network after a few steps may not translate at all;
    L_diff then favors images that need no translation.
    """
    u, v, u_new, v_new = translation_pairs(method, net, z, z_r, mask, weight)
    return excess_loss(method, v_new, predict_by_ridge(u, v, u_new))


def feature_difficulty(method: Any, net: Any, z: Tensor, z_r: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
    """Return L_diff for ridge regression of the change on features phi of a fixed random network.

    v^ = u' + d_mean + K(u', u) (K(u, u) + r I)^-1 (d - d_mean), with d = v - u, the kernel of `ridge_difficulty` of
    phi(u) and phi(u'). To change nothing is free, and phi, convolutions and ReLUs, lets the change depend on what
    is where.
    """
    u, v, u_new, v_new = translation_pairs(method, net, z, z_r, mask, weight)
    phi, phi_new = apply_frozen(net.random, torch.cat([u, u_new])).chunk(2)
    return excess_loss(method, v_new, u_new + predict_by_ridge(phi, v - u, phi_new))


def persistent_difficulty(method: Any, net: Any, z: Tensor, z_r: Tensor, mask: Tensor, weight: Tensor) -> Tensor:
    """Return L_diff for a translator M_theta(u, t) that is trained by Adam in every step, and never starts again.

    It knows the exchange, t = (mask, mask a, mask b), since it must serve all of them; one that starts again
    finds out from its pairs. theta minimizes L_trans on the pairs of the batch, where encoder and decoder get no
    gradient; these minimize L_trans on fresh pairs, without the entropy of the images.
    """
    u, v, u_new, v_new = translation_pairs(method, net, z, z_r, mask, weight)
    task = torch.cat([mask[0].to(z.dtype), *(mask[0] * z_r[:2]).detach()]).expand(len(u), -1)
    encoder, decoder = net.translator
    learned = decoder(torch.cat([encoder(u.detach()), task], 1))
    translated = apply_frozen(decoder, torch.cat([apply_frozen(encoder, u_new), task], 1))
    train = method.reconstruction_loss(v.detach(), learned).mean()
    return excess_loss(method, v_new, method.decoder_mean(translated)) + train - train.detach()


def translation_pairs(
    method: Any, net: Any, z: Tensor, z_r: Tensor, mask: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return images u with the value a of a feature, v with b, and fresh u', v'; `weight` scales their gradient."""
    a, b = z_r[:1], z_r[1:2]
    codes = torch.cat([set_feature(z, a, b, mask), set_feature(z_r, a, b, mask)])
    u, v, u_new, v_new = scale_gradient(method.decoder_mean(net.decoder(codes)), weight).chunk(4)
    return u, v, u_new, v_new


def excess_loss(method: Any, v: Tensor, predicted: Tensor) -> Tensor:
    """Return the loss of predicted images, (n, ...) like v, minus that of perfect ones: a scalar."""
    exact = v
    if method.is_bernoulli():
        predicted, exact = torch.logit(predicted, LOGIT_MARGIN), torch.logit(exact, LOGIT_MARGIN)
    return (method.reconstruction_loss(v, predicted) - method.reconstruction_loss(v, exact)).mean()


def translation_loss(method: Any, translator: nn.Module, theta: dict[str, Tensor], u: Tensor, v: Tensor) -> Tensor:
    """Return L_trans, Eq. 2, of the translator with weights `theta`."""
    return method.reconstruction_loss(v, functional_call(translator, theta, (u,))).mean()


def set_feature(z: Tensor, a: Tensor, b: Tensor, mask: Tensor) -> Tensor:
    """Return codes with the masked feature set to a, followed by the same codes with b, (n, d) -> (2 n, d)."""
    return torch.cat([torch.where(mask, a, z), torch.where(mask, b, z)])


def build_random_features(shape: tuple[int, ...], sizes: LayerSizes) -> nn.Module:
    """Build the layers of an encoder up to its codes, (n, *shape) -> (n, features); He et al. (2015) initialize it.

    Without biases, features differ between images by as much as these do.
    """
    net: Any = build_encoder(shape, 1, sizes)
    last = [name for name, module in net.named_modules() if isinstance(module, nn.Linear)][-1]
    owner = net.get_submodule(last.rpartition(".")[0])
    owner[int(last.rpartition(".")[2])] = nn.Identity()
    for name, p in net.named_parameters():
        nn.init.zeros_(p) if name.endswith("bias") else nn.init.kaiming_normal_(p)
    return net


DIFFICULTIES: dict[str, Callable[..., Tensor]] = {
    "data": network_difficulty,
    "steps": network_difficulty,
    "persistent": persistent_difficulty,
    "ridge": ridge_difficulty,
    "random-features": feature_difficulty,
}
