"""The queue of the papers' tables: its packs, a job that is stopped and resumed, and how results are merged."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pandas as pd
import pytest
from benchmarks import gpu_jobs, gpu_queue, gpu_queue_worker, gpu_results, gpu_sharing

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
    for command in gpu_jobs.JOBS[job]:
        if gpu_queue.is_measurement(command):
            continue
        packs = gpu_jobs.list_packs(command)
        kinds = [(json.dumps(pack[0].recipe()["data"]), pack[0].method.pack_signature()) for pack in packs]
        assert len(kinds) == len(set(kinds)) and all(len(pack) <= 54 for pack in packs)
        assert min(map(len, packs)) > 1 or job in ("flowers", "sweep-improved")
        for pack in packs:  # alone on the GPU it ends within a lease of the machine
            assert 0 < gpu_jobs.estimate_seconds(pack) < 25 * 60
    assert gpu_jobs.estimate_minutes(job) < 90


def test_every_job_has_a_place_in_the_plan_after_those_that_it_reads():
    assert sorted(gpu_jobs.ORDER) == sorted(gpu_jobs.JOBS)
    plans = gpu_jobs.plan_leases(40)
    commands = [command for plan in plans for command in plan]
    assert sorted(commands) == sorted(command for _, command in COMMANDS)
    assert all(sum(map(gpu_jobs.estimate_command, plan)) <= gpu_jobs.LEASE_SECONDS for plan in plans)
    for job, before in gpu_jobs.AFTER.items():
        first = min(commands.index(command) for command in gpu_jobs.JOBS[job])
        assert all(commands.index(command) < first for other in before for command in gpu_jobs.JOBS[other])


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
        jobs=(), limit=20.0, wait=30.0, state=tmp_path / "state", collect=tmp_path / "out", stored=tmp_path / "stored",
        save_cache=False,
    )  # fmt: skip
    assert gpu_queue.tyro.cli(gpu_queue.Options, args=gpu_queue.as_arguments(options)) == gpu_queue.replace(
        options, wait=0.0, collect=None, save_cache=True
    )
    arguments = gpu_queue.as_arguments(gpu_queue.replace(options, more="--seeds 2", smoke=3))
    parsed = gpu_queue.tyro.cli(gpu_queue.Options, args=arguments)
    assert (parsed.more, parsed.smoke) == ("--seeds 2", 3)
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
    subprocess.run(program, check=True, env={"PYTHONPATH": str(tmp_path / "folder" / "packages.zip")})


# Time -----------------------------------------------------------------------------------------------------------------


def started(queue_state):
    """Return the commands that were started, in order."""
    lines = (queue_state / "status.txt").read_text().splitlines()
    return [line.partition("started: ")[2] for line in lines if "started: " in line]


def test_a_command_that_cannot_end_in_time_is_passed_over(queue, tmp_path, monkeypatch):
    seconds = {"long": 100.0, "a": 0.1, "b": 0.1}
    monkeypatch.setattr(gpu_queue, "estimate_command", seconds.__getitem__)
    assert queue("long", "a", "b", limit=10.0, first=0.2, parallel=1)
    assert started(tmp_path / "state")[:2] == ["a", "b"], "in their order"
    assert started(tmp_path / "state")[2:] == ["long"], "nothing else is left, and it may have a checkpoint"


def test_the_time_that_others_still_need_is_taken_into_account(queue, tmp_path, monkeypatch):
    seconds = {"a": 3.0, "b": 3.0, "c": 0.1}
    monkeypatch.setattr(gpu_queue, "estimate_command", seconds.__getitem__)
    queue("a", "b", "c", limit=5.0, first=1.0, parallel=3)
    assert started(tmp_path / "state")[:2] == ["a", "c"]


def test_a_measurement_has_the_machine_to_itself(queue, tmp_path):
    measurement = "measure: true"
    jobs = {"job": ("a", measurement, "b")}
    assert queue(limit=30, first=0.5, table=jobs)
    lines = [
        line.split(" ", 1)[1].partition(" after")[0]
        for line in (tmp_path / "state" / "status.txt").read_text().splitlines()
    ]
    assert lines[:2] == ["started: a", "started: b"] and lines[4] == f"started: {measurement}"


def test_workers_of_a_queue_that_was_killed_are_ended(queue, tmp_path):
    logs = tmp_path / "state" / "logs"
    logs.mkdir(parents=True)
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    own = subprocess.Popen([*sleeper, str(tmp_path / "state")], start_new_session=True)
    other = subprocess.Popen(sleeper, start_new_session=True)  # has the number of an earlier worker by chance
    for name, process in (("own", own), ("other", other)):
        (logs / f"{name}.pid").write_text(str(process.pid))
    assert queue("a", limit=30, first=0.0)
    assert own.wait(timeout=10) != 0 and other.poll() is None
    other.kill()
    other.wait()
    assert not list(logs.glob("*.pid"))


# Results --------------------------------------------------------------------------------------------------------------


def test_a_table_that_does_not_fit_stops_nothing(queue, tmp_path):
    path = tmp_path / "stored" / "intervention" / "results" / "cmnist" / "a.csv"
    path.parent.mkdir(parents=True)
    path.write_text("other,columns\n1,2\n")
    assert queue("a", "b", limit=30, first=0.0)
    assert "not merged: intervention/results/cmnist/a.csv" in (tmp_path / "state" / "status.txt").read_text()
    assert (path.parent / "b.csv").is_file() and path.read_text() == "other,columns\n1,2\n"


def test_models_and_runs_are_no_results(tmp_path):
    for name in ("runs/key/scores.json", "model-ours/config.json", "scores.csv", ".tmp/scores.csv", ".scores.csv"):
        path = tmp_path / "gin" / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert [str(path) for path in gpu_results.list_results(tmp_path)] == ["gin/results/scores.csv"]


def test_a_smoke_test_leaves_the_stored_tables_alone(queue, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_queue, "STORED", tmp_path / "stored")
    assert queue("a", limit=30, first=0.0, smoke=2)
    assert not (tmp_path / "stored").exists() and list((tmp_path / "state" / "stored").rglob("a.csv"))


def test_a_worker_gets_further_flags():
    arguments = gpu_queue.worker_arguments("a --b c", gpu_queue.Options(smoke=2, more="--d 'e f'"), Path("x.log"))
    assert arguments[-5:] == ["x.scoring", "2", "a --b c", "--d", "e f"]


def test_a_smoke_test_has_few_steps_and_all_else(monkeypatch):
    (command, *_) = gpu_jobs.JOBS["dsprites-ours"]
    script, options = gpu_jobs.parse_command(command)
    before = script.list_runs(options)
    for name in ("list_runs", "execute"):
        monkeypatch.setattr(script, name, getattr(script, name))
    for module, name in ((gpu_queue_worker.palettes, "MAX_TEST_DIGITS"), (gpu_queue_worker.scoring, "MAX_TEST_IMAGES")):
        monkeypatch.setattr(module, name, getattr(module, name))
    gpu_queue_worker.shorten_runs(script, 3)
    after = script.list_runs(options)
    assert [*after] == [*before]
    for head, run in after.items():
        assert run.data.recipe() == before[head].data.recipe() and run.key != before[head].key
        assert (run.method.steps, len(run.method.widths)) == (3, len(before[head].method.widths))
    assert gpu_queue_worker.palettes.MAX_TEST_DIGITS < 1_000


def test_a_smoke_test_of_flowers_has_few_steps(monkeypatch):
    (command,) = gpu_jobs.JOBS["flowers"]
    script, options = gpu_jobs.parse_command(command)
    monkeypatch.setattr(script, "methods", script.methods)
    for module, name in ((gpu_queue_worker.palettes, "MAX_TEST_DIGITS"), (gpu_queue_worker.scoring, "MAX_TEST_IMAGES")):
        monkeypatch.setattr(module, name, getattr(module, name))
    assert {method.steps for method in script.methods(options).values()} == {20_000}
    gpu_queue_worker.shorten_runs(script, 3)
    assert {method.steps for method in script.methods(options).values()} == {3}


def test_workers_read_the_tables_of_the_queue(tmp_path, monkeypatch):
    monkeypatch.setenv(gpu_queue.RESULTS_VARIABLE, str(tmp_path))
    assert gpu_queue_worker.palettes.stored_results() == tmp_path
    monkeypatch.delenv(gpu_queue.RESULTS_VARIABLE)
    assert gpu_queue_worker.palettes.stored_results().name == "papers"


@pytest.mark.parametrize("megabytes", [10.0, 1e-4, 1e-9])
def test_a_large_cache_comes_back_in_parts(tmp_path, monkeypatch, megabytes):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    cache = gpu_results.compile_cache
    gpu_results.save_cache(tmp_path / "cache.tar.gz")
    assert not gpu_results.cache_parts(tmp_path / "cache.tar.gz"), "nothing was compiled"
    cache.private_folder(cache.compile_folder())
    cache.mark_compiled("a step")
    monkeypatch.setattr(gpu_results, "MAX_FILE_MB", megabytes)
    gpu_results.save_cache(tmp_path / "cache.tar.gz")
    parts = gpu_results.cache_parts(tmp_path / "cache.tar.gz")
    assert {10.0: len(parts) == 1, 1e-4: 1 < len(parts) <= 4, 1e-9: not parts}[megabytes], "at most four files"
    cache.clear_cache()
    if parts:
        assert gpu_results.load_cache(tmp_path / "cache.tar.gz") == 1 and cache.step_file("a step").is_file()


def test_missing_data_of_a_pack_are_named(tmp_path):
    with pytest.raises(InputError, match="flowers102"):
        gpu_results.pack_folder(tmp_path / "folder", tmp_path / "data", ("flowers102",))


# Rates of packs -------------------------------------------------------------------------------------------------------

STUB = """#!/usr/bin/env bash
echo "$*" >> "$CALLS"
case "$*" in *--warm*) echo '{"case"';; *"cache pack"*) touch "${@: -1}";; esac
"""


@pytest.mark.parametrize("stage", gpu_jobs.STAGES)
def test_every_stage_of_the_measurements_calls_programs_that_exist(stage, tmp_path):
    stub = tmp_path / "python"
    stub.write_text(STUB)
    stub.chmod(0o755)
    environment = os.environ | {"PYTHON": str(stub), "CALLS": str(tmp_path / "calls")}
    command = f"{gpu_jobs.MEASUREMENT}bash benchmarks/gpu_packs.sh {stage}"
    arguments = gpu_queue.worker_arguments(command, gpu_queue.Options(state=tmp_path), tmp_path / "x.log")
    subprocess.run(arguments, check=True, env=environment, capture_output=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    out = tmp_path / gpu_results.MEASURED
    assert {"gpu.json", "profile.json", "precision.csv"} <= {path.name for path in out.iterdir()}
    for call in calls:
        assert str(out) in call or call.startswith("-m unweave cache")
    expected = {"packs": 16, "wide": 16, "gin": 2, "starts": 21, "precision": 1}
    assert len(calls) == expected[stage]
    names = {
        name for call in calls if "--cases" in call for name in [call.partition("--cases ")[2].partition(" --")[0]]
    }
    from benchmarks.gpu import cases

    assert names <= {*cases()}


def test_measurements_are_merged_where_they_are_stored(tmp_path):
    state = tmp_path / "state"
    (state / gpu_results.MEASURED).mkdir(parents=True)
    for name in ("gpu.json", "starts.log"):
        (state / gpu_results.MEASURED / name).write_text("{}")
    gpu_results.collect(state, tmp_path / "out")
    (tmp_path / "measured").mkdir()
    assert not gpu_results.merge_archive(
        tmp_path / "out" / "results.tar.gz", tmp_path / "stored", tmp_path / "measured"
    )
    assert [path.name for path in (tmp_path / "measured").iterdir()] == ["gpu.json"]
    assert not (tmp_path / "stored").exists()
