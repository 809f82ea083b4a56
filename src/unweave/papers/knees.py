"""The knees of the stored spectra of digits, computed again by the rule of this version.

python -m unweave.papers.knees           # writes numbers.json of every model, and the figures of spectra

Outputs of the stored models are not part of the package, so the error of a deviation is that of as many independent
normal outputs as there were images.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from unweave.methods.flows.features import MAX_SAMPLES
from unweave.methods.flows.knee import describe_knee, find_knee, simulate_resamples
from unweave.papers.flow_digits import N_PCA, NUMBERS, SPECTRUM, load_digits, update_numbers
from unweave.papers.folders import Folders
from unweave.papers.scripts import stored_results
from unweave.papers.self_supervised_gin.digits import compare_spectra
from unweave.report.figures.flows import plot_spectra
from unweave.utils.storage import read_json


def refresh_knee(place: Path) -> dict[str, Any]:
    """Write the knee of the spectrum in a model's folder into its numbers, and return them."""
    spectrum = pd.read_csv(place / SPECTRUM)["deviation"].to_numpy()
    knee = find_knee(spectrum, simulate_resamples(spectrum, MAX_SAMPLES))
    _, *others = read_json(place / NUMBERS)["diagnosis"]
    return update_numbers(
        place,
        informative=knee.informative,
        confidence=round(knee.confidence, 6),
        interval=[*knee.interval],
        diagnosis=[describe_knee(knee.informative, knee.interval, spectrum), *others],
    )


def main(papers: Path | None = None) -> None:
    """Refresh all knees below a folder of papers (default: the package's), and draw both figures of spectra."""
    papers = papers or stored_results()
    for path in sorted(papers.glob(f"*gin/results/digits/**/{SPECTRUM}")):
        refresh_knee(path.parent)
    for place, seed in (
        (Folders(papers / "gin", "digits"), "seed-0"),
        (Folders(papers / "self_supervised_gin", "digits"), "lr-0.0003/seed-0"),
    ):
        numbers, frame = read_json(place.results / seed / NUMBERS), pd.read_csv(place.results / seed / SPECTRUM)
        knee = numbers["informative"], (numbers["interval"][0], numbers["interval"][1])
        spectrum, images = frame["deviation"].to_numpy(), load_digits("mnist").images[:N_PCA]
        pca = np.sqrt(PCA().fit(images.reshape(len(images), -1).astype(float)).explained_variance_)
        place.save(plot_spectra(spectrum, *knee, pca), "spectrum.png")
        if "untrained" in frame:
            place.save(compare_spectra(frame["untrained"].to_numpy(), spectrum, *knee), "spectra.png")


if __name__ == "__main__":
    main()
