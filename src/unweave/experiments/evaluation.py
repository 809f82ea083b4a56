"""Evaluation of trained runs: the sample that they are scored on, and every metric on their codes."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Generator, Tensor

from unweave.data.core import Factor, FactorData, Sample
from unweave.data.scaling import scale_data
from unweave.experiments.run import EvaluationSet, Run
from unweave.methods.base import Method
from unweave.metrics.contract import Metric, as_numbers, column_name, validate_pair
from unweave.metrics.factors import PreparedFactors, expand_angles
from unweave.metrics.local_isometry import PreparedInputs
from unweave.utils.errors import list_names

DEFAULT_METRICS = ("mcc", "local-isometry")
EVALUATION_SIZE = 10_000  # observations to score on, where the data are a generator or a large grid
EVALUATION_SEED = 1_000_003  # its own stream: no run is scored on the draws that it was trained on
REASONS = {"nominal": "classes without an order"}  # by kind: why a metric leaves factors out
PARALLEL_AFTER = 2.0  # seconds of scoring a pack after which other processes take part

Scores = dict[str, float | None]
"""Values by column name; None where the data do not allow the metric."""


def evaluation_sample(data: FactorData, size: int) -> Sample:
    """Return the observations that a run is scored on: all points of its evaluation data, or `size` of them."""
    return data.collect(size, Generator().manual_seed(EVALUATION_SEED))


def scale_for_training(data: FactorData, sample: Sample) -> tuple[FactorData, PreparedInputs]:
    """Return the data that methods learn from, and the observations of the sample, with columns scaled alike.

    Metrics that compare distances get these observations, so that they do not depend on the units of columns either.
    """
    x = sample.x
    if data.scale != "none":
        data = scale_data(data)
        x = x if data.scaling is None else data.scaling.apply(x)
    return data, x.numpy(force=True).view(PreparedInputs)


class MetricInputs:
    """The first argument of each metric for one set of observations; factors are prepared once for all metrics."""

    def __init__(
        self,
        x: Any,
        c: Tensor,
        factors: Sequence[Factor],
        method: Method | None = None,
        code_periods: Sequence[float | None] | None = None,
    ) -> None:
        self.x, self.c, self.factors, self.method, self.code_periods = x, c, factors, method, code_periods
        self._prepared: dict[tuple[int, ...], PreparedFactors] = {}

    def has(self, metric: Metric) -> bool:
        """Return whether the data have what the metric asks for."""
        have = {"inputs": self.x is not None, "nothing": True, "factors": bool(self._columns(metric))}
        have["decoder"] = self.method is not None and self.method.has_decoder()
        return have.get(metric.facts.truth, False)

    def argument_for(self, metric: Metric) -> Any:
        """Return observations, method, None, or the factors of the kinds that the metric is defined for."""
        if metric.facts.truth != "factors":
            return {"inputs": self.x, "decoder": self.method}.get(metric.facts.truth)
        return self.prepare(self._columns(metric))

    def prepare(self, columns: Sequence[int]) -> PreparedFactors:
        """Return some factors with their values and kinds; nothing is guessed from the values."""
        key = tuple(columns)
        if key not in self._prepared:
            factors = [self.factors[j] for j in key]
            values = torch.stack([self.factors[j].numeric_values(self.c[:, j]) for j in key], 1)
            c, _ = validate_pair(values, np.zeros((len(values), 1)))
            discrete, periods = [f.size is not None for f in factors], [f.period for f in factors]
            nominal = [f.kind == "nominal" for f in factors]
            self._prepared[key] = PreparedFactors(c, discrete, periods, self.code_periods, nominal)
        return self._prepared[key]

    def left_out(self, metric: Metric) -> tuple[str, ...]:
        """Return the names of the factors that a metric does not score: noise, and kinds that it is not defined for."""
        if metric.facts.truth != "factors":
            return ()
        used = self._columns(metric)
        return tuple(factor.name for j, factor in enumerate(self.factors) if j not in used)

    def _columns(self, metric: Metric) -> tuple[int, ...]:
        return tuple(j for j, f in enumerate(self.factors) if f.kind in metric.facts.kinds and not f.noise)


def describe_left_out(factors: Sequence[Factor], metrics: Mapping[str, Metric]) -> list[str]:
    """Return one sentence for each set of factors that metrics leave out, with these metrics and the reason.

    Example:
        >>> from unweave import catalog
        >>> factors = [Factor("x"), Factor("color", 3, "nominal"), Factor("dust", noise=True)]
        >>> for text in describe_left_out(factors, catalog.find_metrics(["mcc", "mig"])):
        ...     print(text)
        mcc, mig leave out dust: marked as noise.
        mcc leaves out color: classes without an order.
    """
    inputs = MetricInputs(None, torch.zeros(0, len(factors)), factors)
    by_reason: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for factor in factors:
        names = tuple(name for name, metric in metrics.items() if factor.name in inputs.left_out(metric))
        reason = "marked as noise" if factor.noise else REASONS.get(factor.kind, f"of the kind {factor.kind}")
        if names:
            by_reason.setdefault((reason, names), []).append(factor.name)
    return [
        f"{', '.join(names)} {'leaves' if len(names) == 1 else 'leave'} out {list_names(left)}: {reason}."
        for (reason, names), left in sorted(by_reason.items(), key=lambda item: -len(item[0][1]))
    ]


def compute_scores(inputs: MetricInputs, codes: np.ndarray, metrics: dict[str, Metric]) -> Scores:
    """Return every metric of codes (n, d); one that returns several numbers gives several columns."""
    scores: Scores = {}
    for name, metric in metrics.items():
        if not inputs.has(metric):
            scores[name] = None
            continue
        try:
            # Distances go around the circle where a code is an angle.
            z = expand_angles(codes, inputs.code_periods) if metric.facts.truth == "inputs" else codes
            values = as_numbers(metric(inputs.argument_for(metric), z))
        except ValueError as error:  # a metric that fails must not cost the trained model
            warnings.warn(f"{name} was not computed: {error}", stacklevel=2)
            scores[name] = None
            continue
        # JSON has no NaN
        scores |= {column_name(name, part): v if np.isfinite(v) else None for part, v in values.items()}
    return scores


# A pack of runs -------------------------------------------------------------------------------------------------


class _Task(NamedTuple):
    """Inputs of scoring that all runs of a pack share, small enough to be sent to another process."""

    x: np.ndarray | None
    c: Tensor
    factors: Sequence[Factor]
    metrics: dict[str, Metric]
    threads: int | None
    code_periods: Sequence[float | None] | None = None


def score_pack(
    pack: Sequence[Run],
    evaluation: EvaluationSet,
    metrics: dict[str, Metric],
    notify: Callable[[str], None],
    *,
    jobs: int,
    threads: int | None,
) -> Iterator[tuple[Run, np.ndarray, Scores | Exception]]:
    """Yield run, codes and scores, or the exception; if it takes long, the rest is scored by several processes.

    With `threads`, each run uses that number of threads in any process, so results do not depend on where it ran.
    """
    used = {metric.facts.truth for metric in metrics.values()}
    x = evaluation.inputs if "inputs" in used else None
    task = _Task(x, evaluation.sample.c, evaluation.data.factors, metrics, threads)
    waiting, start = list(pack), time.perf_counter()
    while waiting and (len(waiting) == 1 or threads is None or time.perf_counter() - start < PARALLEL_AFTER):
        run = waiting.pop(0)
        notify(f"{run.title()}: scoring")
        codes = _encode(run, evaluation)
        yield run, codes, _score_codes(run.method, codes, _with_periods(task, run, codes))
    if waiting:
        notify(f"{waiting[0].title()}: scoring {len(waiting)} more, several at once")
        every = [_encode(run, evaluation) for run in waiting]
        methods = [run.method if "decoder" in used else None for run in waiting]
        # A plain array is shared by all processes; of any other class each would get its own copy.
        shared = task._replace(x=None if x is None else np.asarray(x))
        yield from zip(waiting, every, _score_in_parallel(waiting, methods, every, shared, jobs), strict=True)


def _score_in_parallel(
    runs: Sequence[Run], methods: Sequence[Method | None], every: Sequence[Any], task: _Task, jobs: int
) -> list[Scores | Exception]:
    """Score the codes of several runs in several processes; in this one if that is not possible."""
    tasks = [_with_periods(task, run, z) for run, z in zip(runs, every, strict=True)]
    calls = (delayed(_score_in_worker)(os.getpid(), *parts) for parts in zip(methods, every, tasks, strict=True))
    try:
        results: list[tuple[Scores | Exception, list[str]]] = list(Parallel(n_jobs=jobs)(calls))
    except Exception as error:  # a process was killed, or a metric cannot be sent to one
        text = f"scores could not be computed by several processes ({type(error).__name__}): one does it"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return [_score_codes(run.method, z, own) for run, z, own in zip(runs, every, tasks, strict=True)]
    for run, (_, messages) in zip(runs, results, strict=True):
        for message in messages:
            warnings.warn(f"{run.label()}: {message}", stacklevel=2)
    return [scores for scores, _ in results]


def _score_in_worker(
    parent: int, method: Method | None, codes: Any, task: _Task
) -> tuple[Scores | Exception, list[str]]:
    """Return scores and the texts of warnings; the worker ends with the process that started it."""
    if os.getpid() != parent:  # with a single processor, joblib stays in this process
        threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        scores = _score_codes(method, codes, task)
        return scores, sorted({str(w.message) for w in caught if w.category is UserWarning})


def _exit_with_parent(parent: int) -> None:
    """End this process soon after its parent: a killed process cannot stop its workers."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _encode(run: Run, evaluation: EvaluationSet) -> Any:
    """Return the codes of the evaluation sample, (n, d), or the exception."""
    try:
        return run.method.transform(evaluation.sample.x)
    except Exception as error:
        return error


def _with_periods(task: _Task, run: Run, codes: Any) -> _Task:
    """Return the task with the periods of a run's codes, if it could be encoded."""
    return task if isinstance(codes, Exception) else task._replace(code_periods=run.method.code_periods())


def _score_codes(method: Method | None, codes: Any, task: _Task) -> Scores | Exception:
    """Return the scores of codes, or the exception."""
    if isinstance(codes, Exception):
        return codes
    before = torch.get_num_threads()
    try:
        with threadpool_limits(task.threads):
            torch.set_num_threads(task.threads or before)
            inputs = MetricInputs(task.x, task.c, task.factors, method, task.code_periods)
            return compute_scores(inputs, codes, task.metrics)
    except Exception as error:
        return error
    finally:
        torch.set_num_threads(before)
