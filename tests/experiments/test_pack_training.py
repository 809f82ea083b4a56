"""Packs and the memory of the device."""

import pytest
import torch

from unweave import Run, execute, sweep
from unweave.datasets import SquaresXY
from unweave.experiments import pack_training
from unweave.methods import BetaVAE

DATA = SquaresXY(points=60, size=12, side=4)


def test_a_pack_that_is_too_large_for_the_device_is_trained_in_halves(tmp_path, monkeypatch):
    sizes, real = [], pack_training.fit_pack

    def small(methods, *args, **settings):
        sizes.append(len(methods))
        if len(methods) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(methods, *args, **settings)

    monkeypatch.setattr(pack_training, "fit_pack", small)
    runs = sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=2), seed=range(5))
    assert execute(runs, tmp_path, metrics=["mcc"])["seed"].tolist() == [0, 1, 2, 3, 4]
    assert sizes == [5, 2, 3, 1, 2] and not list(tmp_path.glob(".*.checkpoint"))


def test_a_pack_with_a_checkpoint_resumes_after_a_memory_error(tmp_path, monkeypatch):
    sizes, real = [], pack_training.fit_pack

    def late(methods, *args, **settings):
        sizes.append(len(methods))
        found = real(methods, *args, **settings)
        if len(sizes) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return found

    monkeypatch.setattr(pack_training, "fit_pack", late)
    execute(sweep(DATA, BetaVAE(steps=2, layers=(8,), network="mlp", latent_dim=2), seed=range(3)), tmp_path)
    assert sizes == [3, 3]


def test_one_model_that_is_too_large_for_the_device_is_named(tmp_path, monkeypatch):
    def none(*args, **settings):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(pack_training, "fit_pack", none)
    with pytest.warns(match="does not fit into the memory of the device .*: a smaller batch_size"):
        execute([Run(DATA, BetaVAE(steps=2))], tmp_path, metrics=["mcc"])
