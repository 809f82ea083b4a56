"""Steps per second of the trainer, beside a plain PyTorch loop, Lightning and pythae on the same network and data.

python benchmarks/train.py                       # CPU: one conv VAE, a pack of 16 MLP-VAEs
python benchmarks/train.py --device cuda         # conv VAE, packs and strategies, against the plain loop
python benchmarks/train.py --device cuda --out train-gpu.json

Batch 64, Adam. The conv VAE is the reference library's (64 x 64 x 1 images, 10 codes); the MLP-VAE has inputs of 64
numbers and two layers of 128. Peers that are not installed are left out, and named.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from unweave.data.containers import Table
from unweave.data.core import FactorData
from unweave.datasets import DSprites
from unweave.methods import DIPVAE, AdaGVAE, BetaTCVAE, BetaVAE, FactorVAE
from unweave.training.loop import initialize_network
from unweave.training.strategies import choose_runner, matmul_precision
from unweave.utils.errors import first_line

Run = Callable[[int], None]


def images(n: int = 4_096) -> Tensor:
    """dSprites, drawn once."""
    return DSprites().load().draw(n, torch.Generator().manual_seed(0)).x


def loss_of(net: nn.Module, x: Tensor, beta: float, bernoulli: bool) -> Tensor:
    """beta-VAE, written as people write it."""
    mean, logvar = net.encoder(x).chunk(2, 1)
    z = mean + torch.randn_like(mean) * (logvar / 2).exp()
    out = net.decoder(z)
    if bernoulli:
        rec = nn.functional.binary_cross_entropy_with_logits(out, x, reduction="none")
    else:
        rec = 0.5 * (out - x) ** 2
    kl = 0.5 * (mean**2 + logvar.exp() - 1 - logvar)
    return rec.flatten(1).sum(1).mean() + beta * kl.sum(1).mean()


def forever(loader: Any) -> Iterator[Tensor]:
    while True:
        for (x,) in loader:
            yield x


def plain(method: BetaVAE, x: Tensor, device: str) -> Run:
    """An eager loop; a DataLoader on a CPU, data on the device on a GPU."""
    method.shape_ = tuple(x.shape[1:])
    net = initialize_network(method).to(device)
    optimizer = torch.optim.Adam(net.parameters(), float(method.lr))
    batches = forever(DataLoader(TensorDataset(x), method.batch_size, shuffle=True, drop_last=True))
    resident = x.to(device)

    def run(steps: int) -> None:
        for _ in range(steps):
            if device == "cpu":
                batch = next(batches)
            else:
                batch = resident[torch.randint(len(resident), (method.batch_size,), device=device)]
            loss = loss_of(net, batch, float(method.beta), x.ndim == 4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def lightning(method: BetaVAE, x: Tensor) -> Run | None:
    """A LightningModule with the same loss and loader."""
    try:
        import lightning as L
    except ImportError:
        return None
    import logging

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    method.shape_ = tuple(x.shape[1:])

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = initialize_network(method)

        def training_step(self, batch, index):
            return loss_of(self.net, batch[0], float(method.beta), x.ndim == 4)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), float(method.lr))

    module = Module()
    loader = DataLoader(TensorDataset(x), method.batch_size, shuffle=True, drop_last=True)

    def run(steps: int) -> None:
        L.Trainer(
            max_steps=steps, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False,
        ).fit(module, loader)  # fmt: skip

    return run


def pythae(method: BetaVAE, x: Tensor) -> Run | None:
    """pythae's trainer with the same network inside its own beta-VAE."""
    try:
        from pythae.models import BetaVAE as Theirs
        from pythae.models import BetaVAEConfig
        from pythae.models.base.base_utils import ModelOutput
        from pythae.models.nn import BaseDecoder, BaseEncoder
        from pythae.trainers import BaseTrainer, BaseTrainerConfig
    except ImportError:
        return None
    method.shape_ = tuple(x.shape[1:])
    net = initialize_network(method)

    class Encoder(BaseEncoder):
        def __init__(self):
            super().__init__()
            self.net = net.encoder

        def forward(self, x):
            mean, logvar = self.net(x).chunk(2, 1)
            return ModelOutput(embedding=mean, log_covariance=logvar)

    class Decoder(BaseDecoder):
        def __init__(self):
            super().__init__()
            self.net = net.decoder

        def forward(self, z):
            return ModelOutput(reconstruction=torch.sigmoid(self.net(z)))

    config = BetaVAEConfig(
        input_dim=method.shape_, latent_dim=method.latent_dim, beta=float(method.beta), reconstruction_loss="bce"
    )
    model = Theirs(config, Encoder(), Decoder())

    def run(steps: int) -> None:
        settings = BaseTrainerConfig(
            output_dir="/tmp/pythae", num_epochs=1, per_device_train_batch_size=method.batch_size, no_cuda=True
        )
        from pythae.data.datasets import BaseDataset

        n = steps * method.batch_size
        rows = BaseDataset(x[torch.arange(n) % len(x)], torch.zeros(n))
        BaseTrainer(model=model, train_dataset=rows, training_config=settings).train()

    return run


def ours(pack: list[Any], data: FactorData, compiling: str = "always", strategy: str = "auto") -> Run:
    """The trainer's own runner."""
    for method in pack:
        method.validate_settings(data)
    device = pack[0].resolve_device()
    data = data.to(device)
    for method in pack:
        method.prepare(data)
    nets = [initialize_network(method).to(device) for method in pack]
    with matmul_precision(pack[0]):
        runner = choose_runner(pack, nets, data, window=1_000_000, compiling=compiling, strategy=strategy)

    def run(steps: int) -> None:
        with matmul_precision(pack[0]):
            runner.run(steps)

    return run


def timed(runs: dict[str, Run], steps: dict[str, int], rounds: int, device: str) -> dict[str, float]:
    """Steps per second, the median of rounds in turn."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for name, run in runs.items():
        run(steps[name])  # as many as in a round: a graph is captured for so many
    for _ in range(rounds):
        for name, run in runs.items():
            wait()
            start = time.perf_counter()
            run(steps[name])
            wait()
            rates[name].append(steps[name] / (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in rates.items()}


def table(x: Tensor) -> Table:
    return Table(x, torch.zeros(len(x), 0), [])


def on_cpu(rounds: int) -> list[dict[str, Any]]:
    """The two comparisons that are made on a CPU."""
    rows = []
    x = images()
    conv = BetaVAE(device="cpu", steps=10**6)
    peers = {"plain loop": plain(conv, x, "cpu"), "lightning": lightning(conv, x), "pythae": pythae(conv, x)}
    runs = {k: run for k, run in peers.items() if run is not None} | {"unweave, pack of 1": ours([conv], table(x))}
    rates = timed(runs, dict.fromkeys(runs, 20), rounds, "cpu")
    rows += [row("conv VAE, 64 x 64", name, 1, rate, rates["plain loop"]) for name, rate in rates.items()]
    x = torch.rand(4_096, 64, generator=torch.Generator().manual_seed(0))
    make = [BetaVAE(device="cpu", layers=(128, 128), seed=i, beta=1.0 + i, steps=10**6) for i in range(16)]
    runs = {
        "plain loop": plain(make[0], x, "cpu"),
        "unweave, pack of 1": ours(make[:1], table(x)),
        "unweave, pack of 16": ours(make, table(x)),
    }
    rates = timed(runs, dict.fromkeys(runs, 100), rounds, "cpu")
    for (name, rate), m in zip(rates.items(), (1, 1, 16), strict=True):
        rows.append(row("MLP-VAE, 64 inputs", name, m, rate, rates["plain loop"]))
    missing = [name for name, run in peers.items() if run is None]
    if missing:
        print(f"not installed, left out: {', '.join(missing)}")
    return rows


def on_gpu(rounds: int, packs: list[int], every: bool) -> list[dict[str, Any]]:
    """Packs and strategies against the plain loop; and every method with the best of them."""
    rows = []
    data = DSprites().load()
    x = images()
    base = timed({"plain": plain(BetaVAE(), x, "cuda")}, {"plain": 50}, rounds, "cuda")["plain"]
    rows.append(row("conv VAE, 64 x 64", "plain loop", 1, base, base))
    for precision in ("tf32", "bf16"):
        for m in packs:
            for strategy, compiling in (("fork", "never"), ("fork", "always"), ("stack", "always")):
                if m == 1 and strategy == "stack":
                    continue
                pack = [BetaVAE(seed=i, precision=precision, steps=10**6) for i in range(m)]
                name = f"{strategy}{', compiled' if compiling == 'always' else ''}, {precision}"
                rows.append(one("conv VAE, 64 x 64", name, pack, data, base, rounds, (compiling, strategy)))
    for cls in (FactorVAE, BetaTCVAE, DIPVAE, AdaGVAE) if every else ():
        pack = [cls(seed=i, steps=10**6) for i in range(16)]
        rows.append(
            one(f"{cls.__name__}, 64 x 64", "fork, compiled, tf32", pack, data, base, rounds, ("always", "fork"))
        )
    return rows


def one(
    what: str, name: str, pack: list[Any], data: FactorData, base: float, rounds: int, how: tuple[str, str]
) -> dict[str, Any]:
    """A pack's row, printed as soon as it is known; or why there is none."""
    start = time.perf_counter()
    try:
        run = ours(pack, data, *how)
        run(2)
        ready = time.perf_counter() - start
        rate = timed({name: run}, {name: 20}, rounds, "cuda")[name]
    except Exception as error:
        print(f"{what}, {name}, pack of {len(pack)}: {type(error).__name__}: {first_line(error)}", flush=True)
        return {"what": what, "how": name, "models": len(pack), "error": first_line(error)}
    found = row(what, name, len(pack), rate, base) | {"seconds to start": round(ready, 1)}
    print(found, flush=True)
    torch.cuda.empty_cache()
    return found


def row(what: str, how: str, models: int, rate: float, base: float) -> dict[str, Any]:
    speed = models * rate
    return {
        "what": what,
        "how": how,
        "models": models,
        "model-steps/s": round(speed, 1),
        "ratio": round(speed / base, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--packs", type=int, nargs="*", default=[1, 16, 64])
    parser.add_argument("--every", action="store_true", help="other methods too (GPU)")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    rows = on_cpu(options.rounds) if options.device == "cpu" else on_gpu(options.rounds, options.packs, options.every)
    where = (
        torch.cuda.get_device_name()
        if options.device == "cuda"
        else f"{platform.machine()}, {torch.get_num_threads()} threads"
    )
    print(f"\n{where}, torch {torch.__version__}")
    for r in rows:
        numbers = r.get("error") or f"{r['model-steps/s']:>10,.1f} model-steps/s {r['ratio']:>7.2f} x the plain loop"
        print(f"{r['what']:22} {r['how']:28} {r['models']:>4} models {numbers}")
    if options.out:
        options.out.write_text(json.dumps({"where": where, "torch": torch.__version__, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
