"""The command `unweave draw`."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import unweave
from unweave import OwnData, Run
from unweave.cli import main as cli
from unweave.cli.encode import read_as_trained
from unweave.datasets import SquaresXY
from unweave.experiments.study import execute
from unweave.methods import BetaVAE


def test_a_trained_network_is_drawn(run, tmp_path):
    options = ["--steps", "20", "--widths", "4", "--hidden", "8", "--latent-dim", "2", "--data.points", "80"]
    code, _, err = run("fit", "beta-vae", "squares-xy", *options, "--out", "vae")
    assert code == 0, err
    assert Path("vae/history.parquet").is_file()
    code, out, err = run("draw", "vae", "squares-xy", "--out", "figures")
    assert code == 0, err
    figures = ("along-codes", "codes", "curves", "kl", "traversals", "reconstructions", "interpolation")
    names = {f"{name}.png" for name in figures} | {"traversals.gif"}
    assert {path.name for path in Path("figures").iterdir()} == names
    assert len(out.splitlines()) == len(names)
    code, _, err = run("draw", "vae", "swiss-roll")
    assert code == 2
    assert "trained on shape (1, 64, 64)" in err
    code, _, err = run("fit", "beta-vae", "swiss-roll", "--steps", "50", "--lr", "1e30", "--out", "x")
    assert code == 2
    assert "beta-vae is not finite from step" in err
    assert not Path("x").exists()


def test_a_method_without_a_decoder_shows_photographs_along_its_codes(run, tmp_path):
    data = SquaresXY(points=80, size=16, side=5).load()
    for i, image in enumerate(data.render(data.sources)):
        path = Path("photos", "left" if data.sources[i, 0] < data.sources[:, 0].median() else "right", f"{i}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image[0] * 255).byte().numpy()).save(path)
    assert run("fit", "hessian-ica", "photos", "--latent-dim", "2", "--out", "run")[0] == 0
    code, _, err = run("draw", "run", "photos", "--out", "figures")
    assert code == 0, err
    assert {path.name for path in Path("figures").iterdir()} == {"along-codes.png", "codes.png"}
    assert run("report", "run", "--out", "page.html")[0] == 0
    assert "Real observations along each code" in Path("page.html").read_text()


def test_own_files_are_read_with_the_columns_of_the_run(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    table = pd.DataFrame({"m": x[:, 0], "n": x[:, 1], "sex": ["f", "m"] * 20})
    table.to_csv(tmp_path / "mine.csv", index=False)
    small = BetaVAE(latent_dim=2, steps=2, layers=(4,))
    run = Run(OwnData(path=tmp_path / "mine.csv", factors=("sex",)), small)
    execute([run], tmp_path / "runs", metrics=[])
    read = read_as_trained(unweave.catalog.dataset(tmp_path / "mine.csv"), tmp_path / "runs" / run.key)
    assert [factor.name for factor in read.factors] == ["sex"] and read.shape == (2,)
    table.drop(columns="sex").to_csv(tmp_path / "new.csv", index=False)  # other rows, of which no one knows the factor
    with pytest.raises(SystemExit) as stopped:
        cli.main(
            ["draw", str(tmp_path / "runs" / run.key), str(tmp_path / "new.csv"), "--out", str(tmp_path / "drawn")]
        )
    assert not stopped.value.code


def test_a_run_of_an_own_class_needs_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "from unweave.methods import BetaVAE\n\n\nclass Mine(BetaVAE):\n    'Mine.'\n"
    (tmp_path / "own_class.py").write_text(code)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(20, 1, 8, 8)))
    fit = ["fit", "own_class.py:Mine", "x.npy", "--steps", "2", "--widths", "4", "--hidden", "8", "--out", "run"]
    draw = ["draw", "run", "x.npy"]
    for args, expected in ((fit, 0), (draw, 2), ([*draw, "--method", "own_class.py:Mine"], 0)):
        with pytest.raises(SystemExit) as stopped:
            cli.main(args)
        assert stopped.value.code == expected
    assert (tmp_path / "figures" / "traversals.png").is_file()
