"""Random images per second into a batch of 64 on whatever GPU is there, and whether they are those of the CPU."""

import time

import torch

from unweave.datasets import ContinuousSprites, DSprites, GaussianMixture, Shapes3D, SquaresXC, SquaresXY


def main() -> None:
    if not torch.cuda.is_available():
        print("no GPU here")
        return
    print(torch.cuda.get_device_name(), torch.__version__)
    datasets = (DSprites(source="rendered"), Shapes3D(source="rendered"), SquaresXY(), SquaresXC(), GaussianMixture())
    for dataset in (*datasets, ContinuousSprites()):
        start = time.perf_counter()
        data = dataset.load()
        loaded = time.perf_counter() - start
        there, rng = data.to("cuda"), torch.Generator("cuda").manual_seed(0)
        points = data.sample(200, torch.Generator().manual_seed(0))
        worst = (there.render(points.cuda()).cpu() - data.render(points)).abs().max().item()
        for _ in range(5):
            there.draw(64, rng)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            there.draw(64, rng)
        torch.cuda.synchronize()
        rate = 200 * 64 / (time.perf_counter() - start)
        print(f"{dataset.title()}: {rate:,.0f} images/s, loaded in {loaded:.1f} s, differs from the CPU by {worst:.1e}")


if __name__ == "__main__":
    main()
