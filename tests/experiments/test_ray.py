"""Studies on a real cluster of several nodes on this machine, with a worker and a node killed in the middle."""

import os
import signal
import stat
import tempfile
import threading
import time
from pathlib import Path

import pytest

from unweave import InputError
from unweave.experiments import ray as remote
from unweave.experiments.failures import read_failures
from unweave.experiments.ray import Cluster
from unweave.experiments.study import execute
from unweave.experiments.study_file import read_study

STUDY = '''"""Does a cluster do the same?"""
import os
import time
from pathlib import Path

import unweave
from unweave.datasets import SwissRoll
from unweave.methods import PCA, BetaVAE


class Waiting(unweave.Method):
    """Says where it is, and waits until it may go on."""

    paper = "none"

    place: str = ""
    """where it says so"""

    def learn(self, data):
        place = Path(self.place)
        if self.seed == 99:
            raise RuntimeError("a trap")
        import ray

        node = ray.get_runtime_context().get_node_id()
        with (place / "begun").open("a") as file:
            file.write(f"{self.seed} {os.getpid()} {node}\\n")
        while not (place / "go").exists():
            time.sleep(0.05)

    def encode(self, x):
        return x[:, : self.latent_dim]


data = SwissRoll(points=100)
runs = [
    *unweave.sweep(data, Waiting(latent_dim=2, place="PLACE"), seed=[0, 1, 99]),
    *unweave.sweep(data, PCA(latent_dim=2), seed=[0, 1]),
    *unweave.sweep(data, BetaVAE(steps=40, layers=(8,), batch_size=8, latent_dim=2), seed=[0, 1]),
]
metrics = ["mcc"]
'''


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'unweave[ray]'")
    from ray.cluster_utils import Cluster as Nodes

    soon = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": soon})
    for _ in range(2):
        nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def read(tmp_path: Path):
    (tmp_path / "study.py").write_text(STUDY.replace("PLACE", str(tmp_path)))
    return read_study(tmp_path / "study.py")


def scores(out: Path) -> dict[str, str]:
    return {folder.name: (folder / "scores.json").read_text() for folder in out.glob("[!.]*")}


def begun(tmp_path: Path, count: int) -> list[list[str]]:
    """Until so many have begun: seed, process and node of each."""
    for _ in range(600):
        lines = (tmp_path / "begun").read_text().splitlines() if (tmp_path / "begun").exists() else []
        if len(lines) >= count:
            return [line.split() for line in lines]
        time.sleep(0.1)
    raise AssertionError(f"{count} runs did not begin")


def test_killed_workers_and_nodes_cost_nothing_but_their_packs(cluster, tmp_path):
    study, wrong = read(tmp_path), []

    def disturb():
        try:
            first = begun(tmp_path, 2)
            os.kill(int(first[0][1]), signal.SIGKILL)  # a worker
            again = begun(tmp_path, 3)
            assert again[2][0] == first[0][0]  # its pack begins again
            head = cluster.head_node.node_id
            busy = {line[2] for line in again[1:]} - {head}
            lost = next(node for node in cluster.worker_nodes if node.node_id in busy)
            cluster.remove_node(lost, allow_graceful=False)
            begun(tmp_path, 4)
        except Exception as error:
            wrong.append(error)
        finally:
            (tmp_path / "go").touch()

    thread = threading.Thread(target=disturb)
    thread.start()
    said: list[str] = []
    table = remote.execute_on_ray(study.runs, tmp_path / "out", metrics=study.metrics, notify=said.append)
    thread.join()
    assert not wrong, wrong
    assert len(table) == 6 and any("nodes" in text for text in said)
    (about,) = read_failures(tmp_path / "out", [run.key for run in study.runs])
    assert about["error"] == "RuntimeError: a trap"
    with pytest.warns(RuntimeWarning, match="a trap"):
        execute(study.runs, tmp_path / "alone", metrics=study.metrics)
    assert scores(tmp_path / "out") == scores(tmp_path / "alone")


def test_results_are_brought_home_where_no_folder_is_shared(cluster, tmp_path, monkeypatch):
    study = read(tmp_path)
    (tmp_path / "go").touch()
    settings = {"metrics": study.metrics, "where": Cluster(bring_home=True)}
    remote.execute_on_ray(study.runs, tmp_path / "home", **settings)
    assert len(scores(tmp_path / "home")) == 6 and not list((tmp_path / "home").glob(".*.tmp"))
    assert len(read_failures(tmp_path / "home", [run.key for run in study.runs])) == 1
    again: list[str] = []  # nothing is asked for again
    remote.execute_on_ray(study.runs, tmp_path / "home", **settings, notify=again.append)
    assert again == []


BESIDE = '''
from __future__ import annotations

from typing import Literal

import torch

from unweave import Dataset, Factor, Table


class Sheet(Dataset):
    """Points."""

    kind: Literal["a", "b"] = "a"
    """of which no one asks"""
    strength: float = 2.0
    """how far apart they are"""

    def load(self):
        x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)) * self.strength
        return Table(x, x[:, :1].double(), [Factor("one")])
'''


def test_classes_of_a_file_beside_the_study_travel_too(cluster, tmp_path):
    (tmp_path / "beside_on_ray.py").write_text(BESIDE)
    code = "import unweave, beside_on_ray as b\nruns = unweave.sweep(b.Sheet(strength=3), 'pca', seed=range(2))\n"
    (tmp_path / "study.py").write_text(code)
    study = read_study(tmp_path / "study.py")
    assert len(remote.execute_on_ray(study.runs, tmp_path / "out", metrics=["mcc"])) == 2


def test_the_folder_of_a_node_is_private_and_one_for_each_study(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folders = {remote.node_folder(out) for out in ("/data/a/b", "/data/a-b", "/data/" + "long" * 60 + "/x" * 200)}
    (home,) = {folder.parent for folder in folders}
    assert len(folders) == 3 and max(len(folder.name) for folder in folders) < 120
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert remote.node_folder("/data/a/b") in folders
    home.rmdir()
    home.symlink_to(tmp_path)  # as another user may have made it, in a folder for the temporary files of all
    with pytest.raises(InputError, match="belongs to another user, or is a link"):
        remote.node_folder("/data/a/b")


def test_without_ray_it_is_said_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'unweave\[ray\]'"):
        remote.execute_on_ray([], tmp_path)
