"""Write the live explorers of the site: python docs/explorers.py [--models FOLDER] [--only sprites faces digits]

Three pages go to docs/_static/explorers. Their models are loaded from the folder, or trained and saved there: minutes
on a GPU. Digits and faces read their files from UNWEAVE_DATA. All settings are below.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import unweave
from unweave.data.dataset import Dataset
from unweave.datasets import MNIST, DSprites, Faces
from unweave.methods import GIN, FactorVAE
from unweave.methods.base import Method
from unweave.papers.hlle_ica.epochs import USUAL_EPOCHS, list_runs
from unweave.report.explorer.page import describe_explorer, render_page

FOLDER = Path(__file__).parent / "_static" / "explorers"


class LivePage(NamedTuple):
    """One explorer of the site."""

    title: str
    data: Callable[[], Dataset]
    models: Callable[[], dict[str, Method]]  # by the name of their folder; a second one is compared
    observations: int


def sprite_models() -> dict[str, Method]:
    """Return two seeds of one FactorVAE."""
    settings: Any = {"gamma": 10.0, "latent_dim": 10, "steps": 40_000, "precision": "bf16"}
    return {f"factor-vae-dsprites-seed-{seed}": FactorVAE(seed=seed, **settings) for seed in (0, 1)}


def face_models() -> dict[str, Method]:
    """Return the Hessian autoencoder of the paper's page."""
    runs = dict(list_runs(Faces(manifold="01"), 2, USUAL_EPOCHS, 1))["hessian-autoencoder"]
    return {"hessian-autoencoder-faces-01-seed-0": runs[0].method}


def digit_models() -> dict[str, Method]:
    """Return a GIN that is half as wide as the paper's, so that its page is small."""
    settings: Any = {"steps": 20_000, "batch_size": 240, "lr": 3e-4, "lr_decay_after": 45 / 95, "width": 128}
    return {"gin-mnist-seed-0": GIN(seed=0, **settings)}


PAGES = {
    "sprites": LivePage("Two seeds of FactorVAE on dSprites", DSprites, sprite_models, 2_000),
    "faces": LivePage("Hessian autoencoder on faces-01", lambda: Faces(manifold="01"), face_models, 1_500),
    "digits": LivePage("GIN on MNIST", MNIST, digit_models, 400),
}


def load_or_train(name: str, method: Method, data: Any, folder: Path) -> Method:
    """Return the saved model, or train it and save it; saved settings must be those of this file."""
    if not (folder / name).is_dir():
        method.fit(data, callback=unweave.progress_bar())
        method.save(folder / name)
    saved = unweave.load(folder / name)
    execution = {"device", "precision"}  # where and how it was trained
    different = {k for k, v in method.get_params().items() if k not in execution and saved.get_params()[k] != v}
    if different:
        raise SystemExit(f"{folder / name} has other settings ({', '.join(sorted(different))}): delete the folder")
    return saved


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=Path("runs/explorers"), help="folder of trained models")
    parser.add_argument("--only", nargs="*", choices=PAGES, default=list(PAGES), help="pages to write")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        title, make_data, make_models, count = PAGES[name]
        data = make_data().load()
        models = [load_or_train(key, method, data, options.models) for key, method in make_models().items()]
        other = models[1] if len(models) > 1 else None
        payload = describe_explorer(models[0], data, compare=other, limit=count, model_path=f"models/{name}")
        page = FOLDER / f"{name}.html"
        page.write_text(render_page(payload, title), encoding="utf-8")
        sys.stdout.write(f"{page}: {page.stat().st_size / 1e6:.1f} MB, {payload['about']}\n")


if __name__ == "__main__":
    main()
