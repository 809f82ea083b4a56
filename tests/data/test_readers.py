"""A user's own files, good and bad."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from unweave import Factor, InputError, as_data
from unweave.data.own_data import OwnData
from unweave.data.readers.codes import read_codes, read_factors
from unweave.data.readers.tables import read_table


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(20, 3))


def collected(path, **fields):
    return OwnData(path=path, **fields).load().collect(10, torch.Generator())


def save(folder: Path, name: str, x: np.ndarray) -> Path:
    path = folder / name
    frame = pd.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])])
    if path.suffix == ".npy":
        np.save(path, x)
    elif path.suffix == ".npz":
        np.savez(path, x=x)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.csv", "a.tsv", "a.parquet", "A.CSV"])
def test_every_kind_of_file_gives_the_same_rows(name, x, tmp_path):
    draw = collected(save(tmp_path, name, x))
    np.testing.assert_allclose(draw.x.numpy(), x, rtol=1e-12)
    assert draw.c.shape == (20, 0)


@settings(max_examples=40, deadline=None)
@given(
    x=hnp.arrays(
        np.float64, st.tuples(st.integers(2, 6), st.integers(1, 4)), elements=st.floats(-1e6, 1e6), unique=True
    ),
    separator=st.sampled_from(",;\t"),
    header=st.booleans(),
    crlf=st.booleans(),
    bom=st.booleans(),
)
def test_any_table_of_numbers_is_read_as_written(tmp_path_factory, x, separator, header, crlf, bom):
    if x.shape[1] == 1 and separator != ",":
        return  # one column has no separator to recognize
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    lines = [separator.join(f"name {i}" for i in range(x.shape[1]))] if header else []
    lines += [separator.join(repr(float(v)) for v in row) for row in x]
    text = ("\ufeff" if bom else "") + ("\r\n" if crlf else "\n").join(lines) + "\n"
    path.write_bytes(text.encode())
    table = read_table(path)
    np.testing.assert_array_equal(table.to_numpy(), x)
    assert list(table.columns) == [f"name {i}" if header else f"column {i}" for i in range(x.shape[1])]


def test_known_factors_are_split_off(x, tmp_path):
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(kind=["u", "v"] * 10, age=np.arange(20))
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = OwnData(path=tmp_path / "t.csv", factors=("kind", "age")).load()
    assert data.factors == (Factor("kind", 2, "nominal", values=("u", "v")), Factor("age"))
    assert data.shape == (3,)
    assert OwnData(path=tmp_path / "t.csv", columns=("b",)).load().shape == (1,)


def test_an_npz_brings_its_factors_and_their_names(x, tmp_path):
    np.savez(tmp_path / "a.npz", x=x, factors=x[:, :2], factor_names=np.array(["left", "right"]))
    data = OwnData(path=tmp_path / "a.npz").load()
    assert [f.name for f in data.factors] == ["left", "right"]
    np.savez(tmp_path / "b.npz", pictures=x, label=np.arange(20) % 3, extra=x)
    data = OwnData(path=tmp_path / "b.npz", columns=("pictures",), factors=("label",)).load()
    assert data.factors == (Factor("label", 3, "ordinal"),)


def picture(path: Path, value: int, size=(5, 4), mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode == "L" else (value, 0, 0)).save(path)


def test_a_folder_of_images_is_read_in_human_order_with_its_labels(tmp_path):
    for name, value in (("cats/2.png", 20), ("cats/10.png", 100), ("dogs/1.png", 10)):
        picture(tmp_path / name, value)
    (tmp_path / "notes.txt").write_text("not an image")
    draw = collected(tmp_path)
    assert draw.x.shape == (3, 1, 4, 5)
    assert (draw.x[:, 0, 0, 0] * 255).round().tolist() == [20, 100, 10]
    assert draw.c[:, 0].tolist() == [0, 0, 1]


def test_gray_and_color_images_mix(tmp_path):
    picture(tmp_path / "a.png", 255)
    picture(tmp_path / "b.png", 255, mode="RGB")
    assert collected(tmp_path).x[:, :, 0, 0].tolist() == [[1, 1, 1], [1, 0, 0]]


def test_the_content_is_the_recipe_and_not_the_place(x, tmp_path):
    (tmp_path / "other").mkdir()
    a, b = save(tmp_path, "a.csv", x), save(tmp_path / "other", "a.csv", x)
    assert OwnData(path=a).recipe() == OwnData(path=b).recipe()
    assert OwnData(path=a).recipe() != OwnData(path=save(tmp_path, "a.csv", x + 1)).recipe()


def bad(folder: Path) -> dict[str, tuple[Path, dict[str, tuple[str, ...]], str]]:
    """File, options, and what the error must say."""
    x = np.random.default_rng(0).normal(size=(20, 3))

    def text(name, content):
        (folder / name).write_text(content)
        return folder / name

    def binary(name, content):
        (folder / name).write_bytes(content)
        return folder / name

    whole = save(folder, "whole.npy", x).read_bytes()
    zipped = save(folder, "whole.npz", x).read_bytes()
    parquet = save(folder, "whole.parquet", x).read_bytes()
    np.save(folder / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(folder / "two.npz", a=x, b=x)
    np.savez(folder / "objects.npz", x=np.array([{"a": 1}], dtype=object))
    np.savez(folder / "short.npz", x=x, factors=x[:5])
    constant = np.column_stack([x, np.ones(20)])
    (folder / "empty").mkdir()
    picture(folder / "sizes" / "a.png", 1)
    picture(folder / "sizes" / "b.png", 1, size=(6, 4))
    picture(folder / "broken" / "a.png", 1)
    (folder / "broken" / "b.png").write_bytes((folder / "broken" / "a.png").read_bytes()[:40])
    infinite = x.copy()
    infinite[3, 1] = -np.inf
    return {
        "missing": (folder / "whale.npy", {}, r"does not exist; did you mean .*whole.npy"),
        "suffix": (text("a.xlsx", ""), {}, "has an unknown format"),
        "no suffix": (text("data", "1,2"), {}, "no suffix"),
        "empty csv": (text("empty.csv", ""), {}, "cannot be read as a table"),
        "header only": (text("head.csv", "a,b\n"), {}, "0 rows"),
        "one row": (text("one.csv", "a,b\n1,2\n"), {}, "1 row of data; at least two"),
        "text": (
            text("text.csv", "a,name\n1,Bob\n2,Eve\n"),
            {},
            r"column 'name' .* text \('Bob'\).*--data.factors name",
        ),
        "truth values": (text("bool.csv", "a,b\n1,True\n2,False\n"), {}, "column 'b' .* true/false"),
        "gap": (text("gap.csv", "a,b\n1,2\n3,\n5,6\n"), {}, "NaN: first in row 1, column 'b'"),
        "short row": (text("short.csv", "a,b\n1,2\n3\n5,6\n"), {}, "row 1, column 'b'"),
        "long row": (text("long.csv", "a,b\n1,2\n3,4,5\n"), {}, "cannot be read as a table"),
        "not text": (binary("binary.csv", bytes(range(256))), {}, "is not text in UTF-8"),
        "long rows": (text("more.csv", "a,b\n1,2,3\n4,5,6\n"), {}, "names 2 columns, and its first row has 3 values"),
        "one image": (_one_image(folder), {}, "has one image in it"),
        "frames": (_frames(folder), {}, "holds 3 images"),
        "float image": (_float_image(folder), {}, "holds values from 0 to 7"),
        "one array row": (save(folder, "single.npy", x[:1]), {}, "at least two are needed"),
        "constant": (save(folder, "const.csv", constant), {}, "1 column .* never changes: 'c3'.*--data.drop-constant"),
        "all constant": (text("dead.csv", "a,b\n1,2\n1,2\n"), {}, "every column .* is constant"),
        "constant array": (save(folder, "const.npy", constant), {}, "never changes: 'column 3'"),
        "constant factor": (text("f.csv", "a,b\n1,7\n2,7\n"), {"factors": ("b",)}, "factor 'b' .* never changes"),
        "unknown column": (
            save(folder, "u.csv", x),
            {"columns": ("c9",)},
            "no column of u.csv named 'c9'; did you mean",
        ),
        "unknown factor": (
            save(folder, "v.csv", x),
            {"factors": ("C0",)},
            "no column of v.csv named 'C0'; did you mean 'c0'",
        ),
        "only factors": (text("w.csv", "a\n1\n2\n"), {"factors": ("a",)}, "no columns left"),
        "gap in factor": (text("g.csv", "a,b\n1,x\n2,\n"), {"factors": ("b",)}, "factor 'b' .* gaps, first in row 1"),
        "truncated npy": (binary("cut.npy", whole[:-8]), {}, "cannot be read"),
        "garbage npy": (binary("junk.npy", b"hello"), {}, "cannot be read"),
        "empty npy": (binary("zero.npy", b""), {}, "cannot be read"),
        "objects": (folder / "objects.npy", {}, "holds Python objects"),
        "objects npz": (folder / "objects.npz", {}, "holds Python objects"),
        "one axis": (_line(folder), {}, r"shape \(5,\)"),
        "words": (_words(folder), {}, "not real numbers"),
        "complex": (_complex(folder), {}, "not real numbers"),
        "truncated npz": (binary("cut.npz", zipped[:-30]), {}, "cannot be read"),
        "which array": (folder / "two.npz", {}, "which array .* a, b"),
        "unknown array": (folder / "two.npz", {"columns": ("c",)}, "no array in two.npz named 'c'"),
        "short factors": (folder / "short.npz", {}, r"'factors' .* shape \(5, 3\)"),
        "truncated parquet": (binary("cut.parquet", parquet[:-50]), {}, "cannot be read"),
        "no images": (folder / "empty", {}, "has no images in it"),
        "sizes": (folder / "sizes", {}, "images of different sizes: .*a.png is 5 x 4, .*b.png is 6 x 4"),
        "broken image": (folder / "broken", {}, "b.png is not a readable image"),
        "infinite": (save(folder, "inf.npy", infinite), {}, "infinity: first in row 3, column 'column 1'"),
        "columns of images": (folder / "sizes", {"factors": ("a",)}, "has no columns"),
        "factors of npy": (folder / "whole.npy", {"factors": ("a",)}, "without names"),
    }


def _line(folder):
    np.save(folder / "line.npy", np.arange(5.0))
    return folder / "line.npy"


def _words(folder):
    np.save(folder / "words.npy", np.array([["a", "b"], ["c", "d"]]))
    return folder / "words.npy"


def _complex(folder):
    np.save(folder / "complex.npy", np.ones((3, 2), dtype=complex))
    return folder / "complex.npy"


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory):
    return bad(tmp_path_factory.mktemp("bad"))


def test_every_bad_file_is_refused_in_words(bad_files):
    for name, (path, options, expected) in bad_files.items():
        with pytest.raises(InputError, match=expected) as caught:
            OwnData(path=path, **options).load()
        assert "\n" not in str(caught.value).strip(), name


def test_constant_columns_can_be_left_out(tmp_path):
    path = save(tmp_path, "c.csv", np.column_stack([np.arange(5), np.ones(5), np.arange(5) ** 2]))
    assert OwnData(path=path, drop_constant=True).load().shape == (2,)


def test_codes_and_factors_from_other_tools(tmp_path):
    (tmp_path / "f.csv").write_text("kind,size\na,1\nb,2\na,3\nb,4\n")
    table = read_factors(tmp_path / "f.csv")
    assert list(table.columns) == ["kind", "size"]
    with pytest.raises(InputError, match=r"column 'kind' .* holds text, not numbers: codes must be numbers"):
        read_codes(tmp_path / "f.csv")
    np.save(tmp_path / "z.npy", np.eye(3))
    assert read_codes(tmp_path / "z.npy").values.shape == (3, 3)
    assert read_factors(tmp_path / "z.npy").shape == (3, 3)


def _one_image(folder):
    picture(folder / "single" / "a.png", 1)
    return folder / "single"


def _frames(folder):
    (folder / "frames").mkdir()
    frames = [Image.new("L", (4, 4), v) for v in (10, 20, 30)]
    frames[0].save(folder / "frames" / "a.tif", save_all=True, append_images=frames[1:])
    picture(folder / "frames" / "b.png", 1)
    return folder / "frames"


def _float_image(folder):
    (folder / "floats").mkdir()
    for name, value in (("a", 7.0), ("b", 1.0)):
        Image.fromarray(np.array([[0, value]], np.float32)).save(folder / "floats" / f"{name}.tif")
    return folder / "floats"


def test_deep_images_are_scaled_and_not_clipped(tmp_path):
    Image.fromarray(np.array([[0, 257 * 100, 65535]], np.uint16)).save(tmp_path / "a.png")
    Image.fromarray(np.array([[0.0, 0.4, 1.0]], np.float32)).save(tmp_path / "b.tif")
    assert (collected(tmp_path).x[:, 0, 0] * 255).round().tolist() == [[0, 100, 255], [0, 102, 255]]


def test_a_moved_image_is_other_data_for_its_label_changes(tmp_path):
    for name in ("a/1.png", "a/2.png", "b/3.png"):
        picture(tmp_path / name, int(name[2]))
    before = OwnData(path=tmp_path).recipe()
    (tmp_path / "a" / "2.png").rename(tmp_path / "b" / "2.png")
    assert OwnData(path=tmp_path).recipe() != before


@pytest.mark.parametrize(
    ("text", "columns", "first"),
    [
        ("0,1,2\n0.5,1.5,2.5\n3,4,5\n", ["0", "1", "2"], [0.5, 1.5, 2.5]),  # as pandas writes an array
        ("2019,2020\n7,8\n9,10\n", ["2019", "2020"], [7, 8]),  # years
        ("5,3\n7,8\n9,10\n", ["column 0", "column 1"], [5, 3]),  # values
        ("1.5,2\n3,4\n", ["column 0", "column 1"], [1.5, 2]),
        ("a;b\n1,5;2\n-3,25;4\n", ["a", "b"], [1.5, 2]),  # decimal commas
        ("1,5;2,5\n3,5;4,5\n", ["column 0", "column 1"], [1.5, 2.5]),
        ('"a,b",c\n1,2\n3,4\n', ["a,b", "c"], [1, 2]),
    ],
)
def test_headers_and_decimal_commas_are_recognized(tmp_path, text, columns, first):
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv")
    assert list(table.columns) == columns
    assert table.iloc[0].tolist() == first


def test_whole_numbers_are_scored_by_their_values(tmp_path):
    """Ages are ages: 1, 2, 100 are not equally far apart."""
    ages = np.array([1, 2, 100, 1, 2, 100, 50])
    (tmp_path / "f.csv").write_text("age\n" + "\n".join(map(str, ages)))
    data = as_data(np.zeros((7, 2)), read_factors(tmp_path / "f.csv"))
    assert data.factors[0].numeric_values(data.c[:, 0]).tolist() == ages.tolist()
    np.savez(tmp_path / "f.npz", factors=ages[:, None])
    assert read_factors(tmp_path / "f.npz").to_numpy().ravel().tolist() == ages.tolist()
    np.save(tmp_path / "line.npy", ages)
    assert read_codes(tmp_path / "line.npy").values.shape == (7, 1)


@pytest.mark.parametrize("shape", [(), (3, 2, 2)])
def test_codes_and_factors_have_rows_and_columns(tmp_path, shape):
    np.save(tmp_path / "c.npy", np.ones(shape))
    for read in (read_codes, read_factors):
        with pytest.raises(InputError, match=r"has shape \(.*\): expected \(rows,\) or \(rows, columns\)"):
            read(tmp_path / "c.npy")


def test_an_archive_with_the_name_of_an_array_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((3, 2)))
    (tmp_path / "x.npz").rename(tmp_path / "x.npy")
    for read in (lambda path: OwnData(path=path).load(), read_codes, read_factors):
        with pytest.raises(InputError, match=r"holds an archive of arrays: rename it to \.npz"):
            read(tmp_path / "x.npy")
