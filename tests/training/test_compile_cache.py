"""The cache of compiled steps: whose it is, what it holds, and how it is shipped."""

import importlib
import io
import json
import os
import stat
import subprocess
import sys
import tarfile
import tempfile

import pytest
from torch._inductor.runtime.cache_dir_utils import default_cache_dir

from unweave import InputError
from unweave.nn import lane_conv
from unweave.training import compile_cache
from unweave.training.compile_cache import (
    VARIABLE,
    cache_identity,
    cacheable_functions,
    clear_cache,
    compile_folder,
    describe_cache,
    hash_sources,
    mark_compiled,
    pack_cache,
    step_file,
    unpack_cache,
    use_compile_folder,
    user_folder,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "here"))
    for name in (VARIABLE, "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # restored afterwards, whatever the test sets


def fill():
    """Put two files into the cache, one of them a list of paths as Triton writes it."""
    kernel = compile_folder() / "triton" / "abc"
    kernel.mkdir(parents=True)
    (kernel / "step.cubin").write_bytes(b"code")
    paths = {"step.cubin": str(kernel / "step.cubin")}
    (kernel / "__grp__step.json").write_text(json.dumps({"child_paths": paths}))
    (kernel / "half.tmp").write_text("being written")


def test_torch_stores_what_it_compiles_in_a_folder_that_only_the_user_can_read(monkeypatch):
    monkeypatch.setenv(VARIABLE, default_cache_dir())  # as `import torch._inductor` does
    use_compile_folder()
    folder = compile_folder()
    assert os.environ[VARIABLE] == str(folder)
    assert os.environ["TRITON_CACHE_DIR"] == str(folder / "triton")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(value.split("+")[0].split()[0] in folder.name for value in cache_identity().values())
    assert user_folder() is None
    use_compile_folder()  # again: it is not taken for a folder of the user
    assert os.environ[VARIABLE] == str(folder)


def test_a_folder_that_the_user_has_named_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine"))
    use_compile_folder()
    assert os.environ[VARIABLE] == str(tmp_path / "mine")
    assert step_file("key").parent.parent == user_folder() == tmp_path / "mine"
    assert not compile_folder().exists()


def test_where_the_folder_cannot_be_made_the_process_has_one_of_its_own(monkeypatch, tmp_path):
    """The default of torch may have been made by another user."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "here").write_text("a file")
    use_compile_folder()
    mark_compiled("key")
    (folder,) = tmp_path.glob("unweave-compiled-*")
    assert os.environ[VARIABLE] == str(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["link", "open", "foreign"])
def test_a_folder_that_others_can_fill_is_not_used(monkeypatch, tmp_path, kind):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compile_folder().parent.mkdir(parents=True)
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        compile_folder().symlink_to(tmp_path / "elsewhere")
    elif kind == "open":
        compile_folder().mkdir()
        compile_folder().parent.chmod(0o777)
    else:
        compile_folder().mkdir()
        monkeypatch.setattr(os, "getuid", lambda: 4321)
    use_compile_folder()
    assert os.environ[VARIABLE].startswith(str(tmp_path / "unweave-compiled-"))
    with pytest.raises(InputError, match="another"):
        unpack_cache(archive(tmp_path / "fine.tar.gz", {"cache/a": b"x"}))


def test_another_machine_of_the_same_kind_gets_the_cache(tmp_path, monkeypatch):
    fill()
    mark_compiled("key")
    assert pack_cache(tmp_path / "steps.tar.gz") == 3
    assert stat.S_IMODE((tmp_path / "steps.tar.gz").stat().st_mode) == 0o600
    assert (describe_cache()["steps"], describe_cache()["files"]) == (1, 3)
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "there"))
    assert not step_file("key").exists()
    assert unpack_cache(tmp_path / "steps.tar.gz") == 3
    assert step_file("key").exists()
    kernel = compile_folder() / "triton" / "abc"
    assert (kernel / "step.cubin").read_bytes() == b"code"
    paths = json.loads((kernel / "__grp__step.json").read_text())["child_paths"]
    assert paths == {"step.cubin": str(kernel / "step.cubin")}
    clear_cache()
    assert not compile_folder().exists()
    with pytest.raises(InputError, match="has no compiled steps yet"):
        pack_cache(tmp_path / "none.tar.gz")


def archive(path, files, identity=None):
    """Write a tar file with an identity and further files."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in {"identity.json": json.dumps(identity or cache_identity()).encode(), **files}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_files_of_other_versions_or_of_no_cache_are_refused(tmp_path):
    other = archive(tmp_path / "other.tar.gz", {}, cache_identity() | {"torch": "1.0"})
    with pytest.raises(InputError, match=r"packed with torch 1\.0 \(here 2"):
        unpack_cache(other)
    with pytest.raises(InputError, match="another version"):
        unpack_cache(archive(tmp_path / "older.tar.gz", {}, {"torch": cache_identity()["torch"]}))
    with tarfile.open(tmp_path / "plain.tar.gz", "w:gz") as tar:
        tar.add(other, "something")
    with pytest.raises(InputError, match="is no cache"):
        unpack_cache(tmp_path / "plain.tar.gz")
    (tmp_path / "text").write_text("text")
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack_cache(tmp_path / "text")
    with pytest.raises(InputError, match="is no file"):
        unpack_cache(tmp_path / "missing")


def member(name="cache/x", kind=tarfile.REGTYPE, link="", size=0):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def forged(path, *members):
    """Write a tar file with an identity and members whose content is zeros."""
    identity = json.dumps(cache_identity()).encode()
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(member("identity.json", size=len(identity)), io.BytesIO(identity))
        for info in members:
            tar.addfile(info, io.BytesIO(bytes(info.size)) if info.isreg() else None)
    return path


ESCAPES = [
    member("cache/../../outside"), member("cache/a/../../outside"), member("/etc/cron.d/x"), member("elsewhere"),
    member("cache"), member("../cache/x"), member("cache/x", tarfile.SYMTYPE, "/etc/passwd"),
    member("cache/x", tarfile.SYMTYPE, "y"), member("cache/x", tarfile.LNKTYPE, "identity.json"),
    member("cache/x", tarfile.CHRTYPE), member("cache/x", tarfile.BLKTYPE), member("cache/x", tarfile.FIFOTYPE),
    member("cache/x", tarfile.DIRTYPE), member("cache/x", tarfile.CONTTYPE), member("cache/x", tarfile.GNUTYPE_SPARSE),
]  # fmt: skip


@pytest.mark.parametrize("entry", ESCAPES, ids=lambda entry: f"{entry.name}-{entry.type.decode()}")
def test_anything_but_plain_files_in_the_folder_is_refused(tmp_path, entry):
    path = forged(tmp_path / "forged.tar.gz", member("cache/first", size=3), entry)
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack_cache(path)
    assert not compile_folder().exists(), "nothing is taken of such a file"
    assert not (tmp_path / "outside").exists()


def test_absurd_sizes_are_refused_before_they_fill_a_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(compile_cache, "MAX_UNPACKED_BYTES", 2_000_000)
    monkeypatch.setattr(compile_cache, "MAX_FILES", 50)
    huge = forged(tmp_path / "huge.tar.gz", member("cache/a", size=1_500_000), member("cache/b", size=1_500_000))
    with pytest.raises(InputError, match="holds more than 2,000,000 bytes"):
        unpack_cache(huge)
    with pytest.raises(InputError, match="holds more than 50 files"):
        unpack_cache(forged(tmp_path / "many.tar.gz", *(member(f"cache/{i}") for i in range(60))))
    with pytest.raises(InputError, match="a name without an end"):
        unpack_cache(forged(tmp_path / "name.tar.gz", member("cache/" + "x" * 1_500_000)))
    assert not compile_folder().exists()


def test_damaged_files_are_refused(tmp_path):
    whole = forged(tmp_path / "whole.tar.gz", member("cache/a", size=100_000)).read_bytes()
    for i, content in enumerate([whole[:-20], whole[:100] + b"x" * 50 + whole[150:], b"", b"\x1f\x8b"]):
        (tmp_path / f"{i}.tar.gz").write_bytes(content)
        with pytest.raises(InputError, match=r"cannot be unpacked|is no cache"):
            unpack_cache(tmp_path / f"{i}.tar.gz")
    lists = [b"[", b"[1]", b'{"child_paths": 3}', b'{"child_paths": {"a": "/x/.."}}', b'{"child_paths": {"a": 1}}']
    for i, content in enumerate(lists):
        path = archive(tmp_path / f"list{i}.tar.gz", {"cache/triton/k/__grp__a.json": content})
        with pytest.raises(InputError, match="cannot be unpacked"):
            unpack_cache(path)


def test_a_file_that_others_may_write_is_refused(tmp_path, monkeypatch):
    fine = archive(tmp_path / "fine.tar.gz", {"cache/a": b"x"})
    fine.chmod(0o666)
    with pytest.raises(InputError, match="all users may write to it"):
        unpack_cache(fine)
    fine.chmod(0o600)
    assert unpack_cache(fine) == 1
    assert [path.name for path in compile_folder().iterdir()] == ["a"]
    owner = os.geteuid() + 1
    if os.geteuid() == 0:
        os.chown(fine, owner, -1)  # the files of the administrator are trusted
    else:
        monkeypatch.setattr(os, "getuid", lambda: owner)
    with pytest.raises(InputError, match="belongs to another user"):
        unpack_cache(fine)


STEPS = """
import sys
from tests.helpers import train_all
from unweave.methods import AnnealedVAE
train_all([AnnealedVAE(steps=int(sys.argv[1]), latent_dim=2, layers=(8,), batch_size=16)], compiling="always")
from torch._dynamo.utils import counters
print(counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"])
print(counters["aot_autograd"]["autograd_cache_hit"])
"""


def test_a_compiled_step_serves_other_processes_and_runs_of_other_lengths():
    def compile_for(steps):
        command = [sys.executable, "-c", STEPS, str(steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "cannot be compiled" in done.stderr or "CppCompileError" in done.stderr:
            pytest.skip("no compiler here")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert compile_for(20) == ["0", "1", "0"]
    assert compile_for(3_000) == ["1", "0", "1"]  # three steps share a row of this history; it is not traced again
    assert describe_cache()["steps"] == 1


CONVOLUTIONS = """
import torch
from unweave.nn import lane_conv, lane_conv_ops as ops
lane_conv.is_available = lambda device: True
ops.convolve_lanes.register_kernel("cpu")(lambda *args: torch.zeros_like(ops._empty_convolved(*args)))
ops.upsample_lanes.register_kernel("cpu")(lambda *args: torch.zeros_like(ops._empty_upsampled(*args)))
ops.weight_gradient_lanes.register_kernel("cpu")(lambda *args: torch.zeros_like(ops._empty_sums(*args)))
from tests.helpers import train_all
from unweave import as_data
from unweave.methods import AnnealedVAE
settings = {"steps": 3, "latent_dim": 2, "widths": (4, 4), "hidden": (), "batch_size": 4, "precision": "bf16"}
images = as_data(torch.rand(20, 1, 16, 16).numpy())
train_all([AnnealedVAE(seed=i, **settings) for i in range(2)], images, strategy="stack", compiling="always")
from torch._dynamo.utils import counters
print(*(counters["aot_autograd"][f"autograd_cache_{name}"] for name in ("hit", "miss", "bypass")))
"""


def test_graphs_in_bf16_with_our_convolutions_are_traced_once():
    def count():
        done = subprocess.run([sys.executable, "-c", CONVOLUTIONS], capture_output=True, text=True, check=False)
        if "cannot be compiled" in done.stderr or "CppCompileError" in done.stderr:
            pytest.skip("no compiler here")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert count() == ["0", "1", "0"]
    assert count() == ["1", "0", "0"]


def test_functions_in_cached_graphs_exist_and_are_bound_to_their_code(monkeypatch, tmp_path):
    for name in cacheable_functions():
        module, _, function = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), function))
    edited = tmp_path / "lane_conv.py"
    edited.write_text("# another version")
    assert hash_sources([str(edited)]) not in ("", hash_sources([lane_conv.__file__]))
    monkeypatch.setattr(compile_cache, "CONV_CODE", hash_sources([str(tmp_path / "none.py")]))
    assert not any("lane_conv" in name for name in cacheable_functions()), "code that cannot be read is not cached"
