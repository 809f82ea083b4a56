"""The diagnosis of classes in sentences: are there enough, do they overlap, is a variable split in two?"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from sklearn.decomposition import PCA
from torch import Tensor

from unweave.utils.errors import plural

MAX_SENTENCES = 3  # of one kind
N_DIRECTIONS = 10  # principal directions along which classes are compared before training
MIN_GAP = 3.0  # deviations between two neighboring classes, above which nothing fills the gap between them
MIN_OMITTED = 0.01  # fraction of observations left out of the loss, from which on it is reported
MIN_DEVIATION = 0.2  # of the larger of two deviations, below which a class does not vary along a code


def shorten(texts: list[str]) -> list[str]:
    """Return the first few sentences, and how many more there are."""
    if len(texts) <= MAX_SENTENCES:
        return texts
    return [*texts[:MAX_SENTENCES], f"(And {len(texts) - MAX_SENTENCES} more of this kind.)"]


def describe_outlook(x: Tensor, r: Tensor, names: Sequence[str]) -> list[str]:
    """Return what classes guarantee before training, and gaps between them along the principal directions of x.

    Args:
        x: Observations, (n, features).
        r: One-hot classes, (n, classes).
        names: Names of the classes.
    """
    present = [k for k in range(len(names)) if r[:, k].sum() >= 2]  # the sample may have missed a rare class
    count = min(N_DIRECTIONS, *x.shape)
    z = torch.from_numpy(PCA(count, svd_solver="randomized", random_state=0).fit_transform(x))
    classes = [z[r[:, k] > 0] for k in present]
    means, deviations = torch.stack([w.mean(0) for w in classes]), torch.stack([w.std(0) for w in classes])
    present_names = [names[k] for k in present]
    texts = [
        f"Nothing lies between classes {a!r} and {b!r} along principal direction {j + 1} of the observations: "
        "the data do not determine the flow there."
        for j in range(count)
        for a, b in find_gaps(means[:, j], deviations[:, j], present_names)
    ]
    guaranteed = plural((len(names) - 1) // 2, "informative variable")
    guarantee = f"{len(names)} classes guarantee {guaranteed} (2 n + 1 conditions for n)."
    overlap = f"Classes overlap along each of the first {plural(count, 'principal direction')}."
    return [guarantee, *(shorten(texts) or [overlap])]


def find_gaps(means: Tensor, deviations: Tensor, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return neighboring classes along a line that no class connects, from means and deviations (classes,)."""
    order = means.argsort()
    mean, deviation = means[order], deviations[order]
    reach = (mean + deviation).cummax(0).values[:-1]  # how far the classes before reach
    gap = (mean[1:] - deviation[1:] - reach) / torch.maximum(deviation[1:], deviation[:-1]).clamp(min=1e-9)
    rank = order.tolist()
    return [(names[rank[k]], names[rank[k + 1]]) for k in (gap > MIN_GAP).nonzero()[:, 0].tolist()]


def describe_gaps(means: Tensor, deviations: Tensor, names: Sequence[str]) -> list[str]:
    """Return gaps between classes along the codes, from means and deviations (classes, codes).

    Without a connection, a code may be two variables, or one of two.
    """
    return shorten([
        f"Nothing lies between classes {a!r} and {b!r} along code {j + 1}: "
        "the data do not determine how these classes align there."
        for j in range(means.shape[1])
        for a, b in find_gaps(means[:, j], deviations[:, j], names)
    ])  # fmt: skip


def describe_splits(deviations: Tensor) -> list[str]:
    """Return pairs of codes such that no class varies along both, from deviations (classes, codes).

    Such a pair is one variable that was split in two.
    """
    texts = []
    for a in range(deviations.shape[1]):
        for b in range(a + 1, deviations.shape[1]):
            pair = deviations[:, [a, b]]
            exclusive = bool((pair.min(1).values < MIN_DEVIATION * pair.max(1).values).all())
            if exclusive and len(set(pair.argmax(1).tolist())) > 1:
                text = f"No class varies along both code {a + 1} and code {b + 1}: one variable is split in two"
                texts.append(f"{text}; more observations, or another start (restarts=10), can join it.")
    return shorten(texts)


def describe_class_count(n: int, classes: int) -> str:
    """Return whether there are enough classes for n informative variables, which take 2 n + 1."""
    if classes >= 2 * n + 1:
        return f"{classes} classes are enough for {plural(n, 'informative variable')} (2 n + 1 = {2 * n + 1})."
    guaranteed = plural((classes - 1) // 2, "variable")
    text = f"{classes} classes guarantee {guaranteed} (2 n + 1 conditions for n), and {n} were found"
    return f"{text}: outside the theorem, which is sufficient and not necessary."


def describe_rank(n: int, rank: int) -> str:
    """Return whether soft labels vary the coefficients of n informative variables in 2 n independent ways."""
    text = f"Probabilities vary the coefficients of {plural(n, 'informative variable')} in {rank} of {2 * n}"
    return f"{text} independent ways{': fewer than the theorem requires' if rank < 2 * n else ''}."


def describe_omitted(fraction: float) -> list[str]:
    """Return a warning if many observations were alone with their class in a batch."""
    if fraction < MIN_OMITTED:
        return []
    text = f"{fraction:.0%} of the observations did not count, being alone with their class in a batch"
    return [f"{text}: raise batch_size, or leave rare classes out."]


def describe_classes(
    names: Sequence[str], moments: tuple[Tensor, Tensor], rank: int | None, omitted: float
) -> list[str]:
    """Return all sentences on the informative variables after training.

    Args:
        names: Names of the classes.
        moments: Means and deviations of these variables in every class, (classes, variables) each.
        rank: Independent ways in which soft labels vary the coefficients; None for hard labels.
        omitted: Fraction of observations left out of the loss.
    """
    means, deviations = moments
    n = means.shape[1]
    return [
        describe_class_count(n, len(names)) if rank is None else describe_rank(n, rank),
        *describe_gaps(means, deviations, names),
        *describe_splits(deviations),
        *describe_omitted(omitted),
    ]
