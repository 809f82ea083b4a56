"""Manifests: every later change of a file is noticed, and no moment of a replacement looks like one."""

import json
import re

import pytest

from unweave import InputError
from unweave.utils import atomic, manifest, storage
from unweave.utils.manifest import FILE_NAME, check_manifest, replace_file, write_manifest


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scores.json").write_text('{"mcc": 0.5}')
    (tmp_path / "codes.bin").write_bytes(bytes(range(100)))
    write_manifest(tmp_path)
    return tmp_path


def test_every_flipped_bit_is_noticed(folder):
    check_manifest(folder)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for bit in range(0, 8 * len(whole), 11):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            with pytest.raises(InputError, match=re.escape(path.name)):
                check_manifest(folder)
        path.write_bytes(whole)
    check_manifest(folder)


def test_missing_files_are_named_and_additional_ones_are_ignored(folder):
    (folder / "notes.txt").write_text("mine")
    check_manifest(folder)
    for name in ("codes.bin", "scores.json"):
        (folder / name).unlink()
    with pytest.raises(InputError, match=r"codes.bin is missing; scores.json is missing: a study sets"):
        check_manifest(folder)


def test_an_earlier_folder_has_no_manifest_and_passes(folder):
    (folder / FILE_NAME).unlink()
    (folder / "codes.bin").write_bytes(b"")
    check_manifest(folder)
    replace_file(folder, "scores.json", "{}")
    assert (folder / "scores.json").read_text() == "{}" and not (folder / FILE_NAME).exists()


def test_a_large_file_may_be_compared_by_its_size(folder):
    (folder / "codes.bin").write_bytes(bytes(100))
    check_manifest(folder, max_hashed=50)
    (folder / "codes.bin").write_bytes(bytes(99))
    with pytest.raises(InputError, match=r"codes\.bin"):
        check_manifest(folder, max_hashed=50)


def test_an_empty_file_that_nothing_depends_on_is_left_out(folder):
    (folder / "codes.bin").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"codes\.bin is empty"):
        check_manifest(folder, may_be_empty=("codes.bin",))
    with pytest.raises(InputError, match=r"codes\.bin"):
        check_manifest(folder)


def test_at_every_moment_of_a_replacement_the_folder_is_whole(folder, monkeypatch):
    moments = []
    write = atomic.write_atomic

    def observed(path, text):
        check_manifest(folder)
        assert manifest.read_manifest(folder).files.keys() == {"codes.bin", "scores.json"}
        moments.append(path.name)
        write(path, text)
        check_manifest(folder)

    monkeypatch.setattr(manifest, "write_atomic", observed)
    replace_file(folder, "scores.json", '{"mcc": 0.9}')
    assert moments == [FILE_NAME, "scores.json", FILE_NAME]
    monkeypatch.undo()
    (folder / "scores.json").write_text('{"mcc": 0.5}')  # the former content is no longer right
    with pytest.raises(InputError, match=r"scores\.json"):
        check_manifest(folder)


def test_a_reader_sees_no_damage_while_another_process_replaces_a_file(folder, monkeypatch):
    read, count = manifest.read_manifest, []

    def read_then_replaced(place):
        content = read(place)
        if not count:
            count.append(1)
            replace_file(place, "scores.json", '{"mcc": 0.75}')
        return content

    monkeypatch.setattr(manifest, "read_manifest", read_then_replaced)
    check_manifest(folder)
    assert count and (folder / "scores.json").read_text() == '{"mcc": 0.75}'


@pytest.mark.parametrize("name", ["../codes.bin", "/dev/zero", "a/b"])
def test_a_forged_manifest_leads_to_no_other_folder(folder, name):
    content = {"files": {name: {"size": 1, "sha256": "0"}}, "replacements": {}}
    (folder / FILE_NAME).write_text(json.dumps(content | {"checksum": storage.recipe_hash(content)}))
    with pytest.raises(InputError, match="was not written by unweave"):
        check_manifest(folder)
