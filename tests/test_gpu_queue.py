"""The queue of the papers' tables: its packs, a job that is stopped and resumed, and how results are merged."""

import json
import subprocess
import sys
import tarfile
from unittest import mock

import pandas as pd
import pytest
from benchmarks import gpu_jobs, gpu_queue, gpu_results, gpu_sharing

from unweave import InputError

COMMANDS = [(job, command) for job, commands in gpu_jobs.JOBS.items() for command in commands]
# Stands for the script of a table: it goes on where it was stopped, and writes its row at the end.
SCRIPT = """
import pathlib, sys, time
state, name, limit = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
folder = state / "intervention" / "results" / "cmnist"
(folder / "runs").mkdir(parents=True, exist_ok=True)
count = folder / "runs" / (name + ".csv")
with count.open("a") as file:
    file.write("x")
time.sleep(limit if len(count.read_text()) == 1 else 0)
if name.startswith("scores"):
    pathlib.Path(sys.argv[4]).with_suffix(".scoring").touch()
    time.sleep(30)
if name == "broken":
    sys.exit("broken")
(folder / (name + ".csv")).write_text("method,part,seed,sap\\n" + name + ",correlated,0,0.5\\n")
"""


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """Run a queue of stand-ins: the first start of every one takes 30 s."""
    monkeypatch.setattr(gpu_queue, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(gpu_queue, "POLL_INTERVAL", 0.02)
    monkeypatch.setattr(gpu_queue, "save_cache", lambda path: None)
    monkeypatch.setattr(gpu_queue, "estimate_command", lambda command: 0.0)

    def run(*names, limit, first=30.0, table=None, **options):
        monkeypatch.setattr(gpu_queue, "JOBS", table or {"job": names})
        arguments = [sys.executable, "-c", SCRIPT, str(tmp_path / "state")]
        monkeypatch.setattr(
            gpu_queue, "worker_arguments", lambda command, _, log: [*arguments, command, str(first), str(log)]
        )
        folders = {"state": tmp_path / "state", "stored": tmp_path / "stored", "collect": tmp_path / "out"}
        return gpu_queue.main(gpu_queue.Options(**{"jobs": ("job",), "limit": limit} | folders | options))

    return run


@pytest.mark.parametrize("job", gpu_jobs.JOBS)
def test_all_seeds_and_strengths_of_a_class_are_one_pack(job):
    with mock.patch("unweave.papers.swap_contrast.tables.chosen_palette", lambda: "adjacent-60-45"):
        for command in gpu_jobs.JOBS[job]:
            packs = gpu_jobs.list_packs(command)
            kinds = [(json.dumps(pack[0].recipe()["data"]), pack[0].method.pack_signature()) for pack in packs]
            assert len(kinds) == len(set(kinds)) and all(2 <= len(pack) <= 30 for pack in packs)
            for pack in packs:  # alone on the GPU it ends within a lease of the machine
                assert 0 < gpu_jobs.estimate_seconds(pack) < 25 * 60
    assert gpu_jobs.estimate_minutes(job) < 90


def test_commands_of_a_job_come_after_those_that_they_read():
    assert {*gpu_jobs.AFTER} | {job for jobs in gpu_jobs.AFTER.values() for job in jobs} <= {*gpu_jobs.JOBS}
    options = gpu_queue.Options(jobs=("palettes", "digits"))
    queue = gpu_queue.Queue(options)
    palettes, digits = (gpu_jobs.JOBS[job] for job in options.jobs)
    assert not any(queue.needed_by(command) for command in palettes)
    assert all(queue.needed_by(command) == [*palettes] for command in digits)


def test_the_strengths_of_factor_vae_share_a_pack():
    (command, *_) = gpu_jobs.JOBS["dsprites-factor-vae"]
    (pack,) = gpu_jobs.list_packs(command)
    assert {(run.method.gamma, run.method.seed) for run in pack} == {(g, s) for g in (10.0, 40.0) for s in range(5)}
    assert all(run.method.steps == 100_000 and run.method.lr == run.method.critic_lr == 1e-4 for run in pack)


def test_a_job_that_is_stopped_resumes_and_its_results_are_collected(queue, tmp_path):
    assert not queue("a", "b", limit=1.5)
    assert gpu_results.read_done(tmp_path / "state") == []
    assert "2 of 2 commands are left" in (tmp_path / "out" / "status.txt").read_text()
    assert queue("a", "b", limit=30)
    assert sorted(gpu_results.read_done(tmp_path / "state")) == ["a", "b"]
    assert queue("a", "b", limit=30)  # nothing is left to do
    counts = {path.name: path.read_text() for path in (tmp_path / "state").rglob("runs/*.csv")}
    assert counts == {"a.csv": "xx", "b.csv": "xx"}
    with tarfile.open(tmp_path / "out" / "results.tar.gz") as archive:
        names = {name for name in archive.getnames() if name.endswith(".csv")}
    assert names == {f"intervention/results/cmnist/{name}.csv" for name in "ab"}, "no file of a run"
    gpu_queue.main(gpu_queue.Options(merge=tmp_path / "out" / "results.tar.gz", stored=tmp_path / "elsewhere"))
    assert len(list((tmp_path / "elsewhere").rglob("*.csv"))) == 2


def test_a_command_that_fails_does_not_stop_the_others(queue, tmp_path):
    assert not queue("broken", "a", limit=30, first=0.0)
    assert gpu_results.read_done(tmp_path / "state") == ["a"]
    status = (tmp_path / "out" / "status.txt").read_text()
    assert "FAILED" in status and "1 of 2 commands are left" in status


def test_rows_and_records_are_merged(tmp_path):
    old, new = (tmp_path / name / "gin" / "results" for name in ("old", "new"))
    for folder, names, rows in (
        (old, ["a.png"], [("ours", 0, 0.1), ("ours", 1, 0.2)]),
        (new, ["b.png"], [("ours", 1, 0.9), ("other", 0, 0.3)]),
    ):
        folder.mkdir(parents=True)
        pd.DataFrame(rows, columns=["method", "seed", "sap"]).to_csv(folder / "scores.csv", index=False)
        (folder / "figures.json").write_text(json.dumps({"figures": names}))
    gpu_results.merge_folder(tmp_path / "new", tmp_path / "old")
    table = pd.read_csv(old / "scores.csv").set_index(["method", "seed"])["sap"].to_dict()
    assert table == {("ours", 0): 0.1, ("ours", 1): 0.9, ("other", 0): 0.3}
    assert json.loads((old / "figures.json").read_text())["figures"] == ["a.png", "b.png"]


def test_unknown_jobs_and_a_second_queue_are_refused(queue, tmp_path):
    with pytest.raises(InputError, match="did you mean 'digits'"):
        gpu_queue.main(gpu_queue.Options(jobs=("digit",)))
    with gpu_queue.running(tmp_path / "state"), pytest.raises(InputError, match="already"):
        queue("a", limit=1)


def test_results_are_collected_while_others_run(queue, tmp_path):
    assert not queue("a", "scores slowly", limit=2.0, first=0.0)
    archive = tmp_path / "out" / "results.tar.gz"
    with tarfile.open(archive) as file:
        assert {"done.json", "intervention/results/cmnist/a.csv"} <= set(file.getnames())
    # On another machine the command that is done is not repeated:
    state = tmp_path / "other"
    assert queue("a", limit=30, state=state, resume=archive)
    assert not list(state.rglob("runs")) and gpu_results.read_done(state) == ["a"]


def test_logs_come_back_while_a_command_runs(queue, monkeypatch):
    collected = []
    monkeypatch.setattr(gpu_queue, "collect", lambda state, out: collected.append(out))
    monkeypatch.setattr(gpu_queue, "COLLECT_INTERVAL", 0.1)
    assert not queue("a", limit=1.0)
    assert len(collected) > 3


def test_a_job_waits_for_those_that_it_reads(queue, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_queue, "AFTER", {"later": ("job",)})
    jobs = {"job": ("slow",), "later": ("a",), "other": ("b",)}
    assert queue(limit=30, first=0.5, jobs=("later", "job", "other"), table=jobs)
    status = [line.split(" ", 1)[1] for line in (tmp_path / "state" / "status.txt").read_text().splitlines()]
    assert status[:2] == ["started: slow", "started: b"]
    (end,) = (k for k, line in enumerate(status) if line.startswith("done") and line.endswith("slow"))
    assert status.index("started: a") > end


def test_a_command_that_scores_leaves_its_place(queue, tmp_path):
    assert not queue("scores slowly", "a", limit=2.0, first=0.0, parallel=1)
    assert gpu_results.read_done(tmp_path / "state") == ["a"]


def test_commands_read_what_others_have_found(queue, tmp_path):
    """Stored tables may be replaced while a queue runs, e.g. by another copy of the repository."""
    assert queue("a", limit=30, first=0.0)
    for path in (tmp_path / "stored").rglob("*.csv"):
        path.unlink()
    assert not queue("broken", limit=30, first=0.0)
    assert [path.name for path in (tmp_path / "stored").rglob("*.csv")] == ["a.csv"]


def test_a_queue_in_the_background_goes_on_and_is_waited_for(tmp_path):
    options = gpu_queue.Options(
        jobs=(), limit=20.0, wait=30.0, state=tmp_path / "state", collect=tmp_path / "out", stored=tmp_path / "stored"
    )
    arguments = gpu_queue.as_arguments(options)
    assert gpu_queue.tyro.cli(gpu_queue.Options, args=arguments) == gpu_queue.replace(options, wait=0.0, collect=None)
    gpu_queue.start_in_background(arguments, options.state)
    assert gpu_queue.main(options) and not gpu_queue.is_running(options.state)
    status = (tmp_path / "out" / "status.txt").read_text()
    assert "all done" in status and "queue\n" in status


def test_a_daemon_that_does_not_work_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_sharing.shutil, "which", lambda name: "/bin/true")
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    for program, works in (("import sys; sys.exit(805)", False), ("", True)):
        monkeypatch.setattr(gpu_sharing, "OPEN_GPU", program)
        with gpu_sharing.shared_gpu(tmp_path):
            assert ("CUDA_MPS_PIPE_DIRECTORY" in gpu_sharing.os.environ) is works
        gpu_sharing.os.environ.pop("CUDA_MPS_PIPE_DIRECTORY", None)


def test_the_folder_for_another_machine_has_packages_and_data(tmp_path, monkeypatch):
    for name in ("mnist/train.gz", "basis_3dshapes.npz", "too-large.zip"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    gpu_queue.main(gpu_queue.Options(pack=tmp_path / "folder"))
    assert sorted(p.name for p in (tmp_path / "folder" / "data").iterdir()) == ["basis_3dshapes.npz", "mnist"]
    code = (
        "import sys, tyro, typeguard, rich; sys.exit(not all('folder' in m.__file__ for m in (tyro, typeguard, rich)))"
    )
    program = [sys.executable, "-c", code]
    subprocess.run(program, check=True, env={"PYTHONPATH": str(tmp_path / "folder" / "packages")})
