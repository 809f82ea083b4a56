"""The face generator: every operation against torch, on networks written by hand; the real one where installed."""

import importlib.machinery
import importlib.util
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from unweave import InputError
from unweave.data.downloads import MissingData, PublishedFile
from unweave.datasets import stylegan
from unweave.datasets.openvino import OpenVinoNetwork
from unweave.datasets.stylegan import face_generator, find_weights, principal_directions


class Writer:
    """Writes OpenVINO's two files by hand. A value is (layer, port); arrays given as inputs become constants."""

    def __init__(self, shape="1, 4"):
        self.layers, self.edges, self.data = [], [], b""
        self.input = self.add("Parameter", shape=shape, element_type="f32")

    def add(self, kind, *inputs, outputs=1, **options):
        sources = [s if isinstance(s, tuple) else self.constant(s) for s in inputs]
        number = len(self.layers)
        for place, (source, port) in enumerate(sources):
            places = f'to-layer="{number}" to-port="{place}"'
            self.edges.append(f'<edge from-layer="{source}" from-port="{port}" {places}/>')
        data = " ".join(f"{k}={quoteattr(str(v))}" for k, v in options.items())
        # OpenVINO counts a layer's output ports on from its input ports.
        ports = [len(sources) + i for i in range(0 if kind == "Result" else outputs)]
        made = "".join(f'<port id="{port}"/>' for port in ports)
        name = f'<layer id="{number}" name="{kind.lower()}_{number}" type="{kind}">'
        self.layers.append(f"{name}<data {data}/><output>{made}</output></layer>")
        values = [(number, port) for port in ports]
        return values if outputs > 1 else (values or [None])[0]

    def constant(self, value):
        value = np.asarray(value)
        kind = {"f": "f32", "i": "i64"}[value.dtype.kind]
        raw = value.astype({"f32": "<f4", "i64": "<i8"}[kind]).tobytes()
        place = {"offset": len(self.data), "size": len(raw)}
        self.data += raw
        return self.add("Const", element_type=kind, shape=", ".join(map(str, value.shape)), **place)

    def write(self, folder, *result):
        for value in result:
            self.add("Result", value)
        path = folder / "tiny.xml"
        text = f"<net><layers>{''.join(self.layers)}</layers><edges>{''.join(self.edges)}</edges></net>"
        path.write_text(f'<?xml version="1.0"?>{text}')
        path.with_suffix(".bin").write_bytes(self.data)
        return path


SYMMETRIC = {"pads_begin": "1, 1", "pads_end": "1, 1", "dilations": "1, 1", "auto_pad": "explicit"}
NO_PADS = SYMMETRIC | {"pads_begin": "0, 0", "pads_end": "0, 0"}


def array(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def tiny_synthesis(folder):
    """A style network in small: a fixed picture (2, 2, 2), channels scaled by two styles in turn, then 3 colors."""
    net = Writer()
    rows = net.add("Gather", net.add("ShapeOf", net.input), np.array([0]), np.array(0), batch_dims=0)
    shape = net.add("Concat", rows, np.array([2, 1, 1]), axis=0)

    def style(weights):
        product = net.add("MatMul", net.input, weights, transpose_a="false", transpose_b="true")
        return net.add("Reshape", product, shape, special_zero="true")  # (n, 2, 1, 1)

    # The fine style stands first in the file: slots must follow the way to the output, not the numbers.
    fine, coarse = style(array(2, 4, seed=1)), style(array(2, 4, seed=2))
    x = net.add("Tile", array(1, 2, 2, 2), net.add("Concat", rows, np.array([1, 1, 1]), axis=0))
    x = net.add("PReLU", net.add("Multiply", x, coarse, auto_broadcast="numpy"), np.array([0.25]))
    x = net.add("Convolution", net.add("Multiply", x, fine), array(3, 2, 1, 1), strides="1, 1", **NO_PADS)
    return net.write(folder, x)


def expected_synthesis(first, second):
    """The same with torch, from the w of the coarse and of the fine style."""
    fine, coarse = torch.from_numpy(array(2, 4, seed=1)), torch.from_numpy(array(2, 4, seed=2))
    x = F.leaky_relu(torch.from_numpy(array(1, 2, 2, 2)) * (first @ coarse.T)[:, :, None, None], 0.25)
    return F.conv2d(x * (second @ fine.T)[:, :, None, None], torch.from_numpy(array(3, 2, 1, 1)))


def test_a_dense_network_gives_what_torch_gives(tmp_path):
    net = Writer()
    square = net.add("Power", net.input, np.array([[2.0]]))
    mean = net.add("ReduceMean", square, np.array([1]), keep_dims="true")
    x = net.add("Multiply", net.input, net.add("Power", mean, np.array([[-0.5]])))
    x = net.add("MatMul", x, array(6, 4), transpose_a="false", transpose_b="true")
    x = net.add("PReLU", net.add("Add", x, array(1, 6)), np.array([0.2], np.float32))
    network = OpenVinoNetwork(net.write(tmp_path, x))
    w = torch.from_numpy(array(5, 4, seed=3))  # more rows than the file's one
    normal = w / (w**2).mean(1, keepdim=True).sqrt()
    expected = F.leaky_relu(F.linear(normal, torch.from_numpy(array(6, 4)), torch.from_numpy(array(1, 6))), 0.2)
    torch.testing.assert_close(network(w), expected)
    assert network.slots == {}  # the input is squared too, so there is no W+
    with pytest.raises(InputError, match=r"\(5, 2, 4\): expected \(n, 4\)$"):
        network(w[:, None].expand(5, 2, 4))


def test_a_convolutional_network_gives_what_torch_gives(tmp_path):
    net = Writer("1, 32")
    x = net.add("Reshape", net.input, np.array([0, 4, 2, -1]), special_zero="true")  # (n, 4, 2, 4)
    x = net.add("Convolution", x, array(6, 4, 3, 3), strides="1, 2", **SYMMETRIC)  # (n, 6, 2, 2)
    x = net.add("GroupConvolution", x, array(3, 1, 2, 3, 3), strides="1, 1", **SYMMETRIC)  # (n, 3, 2, 2)
    x = net.add("PReLU", x, np.array([0.1, 0.2, 0.3], np.float32))
    x = net.add(
        "GroupConvolutionBackpropData", x, array(3, 1, 2, 2, 1), strides="2, 1", output_padding="0, 0", **NO_PADS
    )
    network = OpenVinoNetwork(net.write(tmp_path, x))
    w = torch.from_numpy(array(3, 32))
    y = F.conv2d(w.reshape(3, 4, 2, 4), torch.from_numpy(array(6, 4, 3, 3)), stride=(1, 2), padding=1)
    y = F.conv2d(y, torch.from_numpy(array(3, 1, 2, 3, 3))[:, 0], padding=1, groups=3)
    y = torch.where(y > 0, y, y * torch.tensor([0.1, 0.2, 0.3])[:, None, None])
    stripes = torch.from_numpy(array(3, 1, 2, 2, 1))[:, 0, :, :, 0]  # (in, out, 2): each row becomes two
    y = torch.einsum("nihw,iok->niohkw", y, stripes).reshape(3, 6, 4, 2)
    torch.testing.assert_close(network(w), y)


def test_pieces_are_split_gathered_and_squeezed_as_openvino_defines(tmp_path):
    net = Writer("1, 6")
    left, right = net.add("VariadicSplit", net.input, np.array(1), np.array([2, -1]), outputs=2)  # (n, 2), (n, 4)
    picked = net.add("Gather", right, np.array([3, 0]), np.array(1), batch_dims=0)  # (n, 2)
    column = net.add(
        "Gather", right, np.array(1), np.array(-1), batch_dims=0
    )  # (n,): a single number takes the axis away
    column = net.add("Unsqueeze", column, np.array([-1, 0]))  # (1, n, 1)
    column = net.add("Squeeze", column, np.array([0]))  # (n, 1)
    net.add("Unheard", net.input)  # leads nowhere, so it does not matter
    path = net.write(tmp_path, net.add("Add", net.add("Multiply", left, picked), column))
    out = OpenVinoNetwork(path)(torch.arange(12.0).reshape(2, 6))
    assert out.tolist() == [[0 * 5 + 3, 1 * 2 + 3], [6 * 11 + 9, 7 * 8 + 9]]


def test_shapes_are_broadcast_and_tiled_as_openvino_defines(tmp_path):
    net = Writer("1, 2")
    shape = net.add("ShapeOf", net.input, output_type="i64")  # (n, 2)
    both = net.add(
        "Broadcast", array(4, 1, 1), shape, mode="bidirectional"
    )  # (4, n, 2): each fills what the other lacks
    one = net.add("Broadcast", np.array([1.0]), shape, mode="numpy")  # (n, 2)
    tiled = net.add("Tile", net.add("Unsqueeze", one, np.array(0)), np.array([2, 1, 1]))  # (2, n, 2)
    out = OpenVinoNetwork(net.write(tmp_path, net.add("Concat", both, tiled, axis=0)))(torch.zeros(3, 2))
    expected = torch.cat([torch.from_numpy(array(4, 1, 1)), torch.ones(2, 1, 1)]).expand(6, 3, 2)
    assert torch.equal(out, expected)


def test_every_layer_may_have_its_own_w_the_coarsest_first(tmp_path):
    network = OpenVinoNetwork(tiny_synthesis(tmp_path))
    w = torch.from_numpy(array(5, 2, 4, seed=7))  # (n, slots, width)
    torch.testing.assert_close(network(w), expected_synthesis(w[:, 0], w[:, 1]))
    torch.testing.assert_close(network(w[:, 0]), expected_synthesis(w[:, 0], w[:, 0]))
    assert torch.equal(network(w[:, :1].expand(5, 2, 4)), network(w[:, 0]))
    for wrong in (w[:, :1], w[..., :3], w[0, 0]):
        with pytest.raises(InputError, match=r"expected \(n, 4\) or \(n, 2, 4\)"):
            network(wrong)


def test_weights_move_to_a_device_and_shapes_stay_readable(tmp_path):
    network = OpenVinoNetwork(tiny_synthesis(tmp_path)).to("meta")  # the device of tensors without values
    out = network(torch.zeros(7, 4))
    assert out.device.type == "meta"
    assert out.shape == (7, 3, 2, 2)


def test_no_value_outlives_its_last_reader(tmp_path):
    network = OpenVinoNetwork(tiny_synthesis(tmp_path))
    read = [port for layer in network.steps.values() for port in layer.inputs]
    finished = [port for ports in network.finished.values() for port in ports]
    assert sorted(finished) == sorted(set(read))  # each once, and with it the network ran in the tests above


def test_images_are_averaged_clamped_and_the_same_in_batches_of_any_size(tmp_path):
    network = OpenVinoNetwork(tiny_synthesis(tmp_path))
    w = torch.from_numpy(array(5, 4))
    full = expected_synthesis(w, w)
    assert full.abs().max() > 1  # so that something is clamped
    torch.testing.assert_close(face_generator(network, size=2, batch=2)(w), full.clamp(-1, 1) / 2 + 0.5)
    small = full.mean((2, 3), keepdim=True).clamp(-1, 1) / 2 + 0.5
    torch.testing.assert_close(face_generator(network, size=1, batch=3)(w), small)
    layerwise = face_generator(network, size=1, batch=5)(w[:, None].expand(5, 2, 4).double())
    assert layerwise.dtype == torch.float64
    torch.testing.assert_close(layerwise.float(), small)
    assert face_generator(network)(w[:0]).shape == (0, 3, 64, 64)
    with pytest.raises(InputError, match="batch=0"):
        face_generator(network, batch=0)


def test_a_truncated_bin_is_refused_by_name(tmp_path):
    xml = tiny_synthesis(tmp_path)
    binary = xml.with_suffix(".bin")
    binary.write_bytes(binary.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"tiny\.bin is truncated or not of this network: the constant 'const_\d+'"):
        OpenVinoNetwork(xml)
    binary.unlink()
    with pytest.raises(InputError, match=r"tiny\.bin cannot be read"):
        OpenVinoNetwork(xml)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</net>", "", "truncated, altered or not OpenVINO's.*ParseError"),
        ('from-layer="0"', 'from-layer="99"', "layer 'shapeof_1' has lost a connection"),
        ('to-layer="1"', 'to-layer="99"', "altered or not OpenVINO's.*KeyError: 99"),
        ('id="0"', 'id="zero"', "altered or not OpenVINO's.*zero"),
        ('type="Parameter"', 'type="Const"', "0 Parameter layers: expected one input and one output"),
        ('shape="1, 4"', 'shape="1, 4, 2"', r"input of shape \(1, 4, 2\)"),
        ('element_type="i64"', 'element_type="u1"', "constant 'const_.*u1"),
        ('shape="2, 4"', 'shape="2, 5"', "not of this network: the constant"),
        ('auto_broadcast="numpy"', 'auto_broadcast="pdpd"', "auto_broadcast='pdpd'; unweave supports only 'numpy'"),
        ('pads_end="0, 0"', 'pads_end="1, 0"', "pads one side more"),
    ],
)
def test_a_malformed_xml_is_refused_by_name(tmp_path, old, new, message):
    xml = tiny_synthesis(tmp_path)
    text = xml.read_text()
    assert old in text
    xml.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=rf"tiny\.(?s:.*){message}"):
        OpenVinoNetwork(xml)


def test_a_missing_xml_and_a_circle_are_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"none\.xml is missing"):
        OpenVinoNetwork(tmp_path / "none.xml")
    net = Writer()
    total = net.add("Add", net.input, net.input)
    net.edges[-1] = net.edges[-1].replace(
        'from-layer="0" from-port="0"', f'from-layer="{total[0]}" from-port="{total[1]}"'
    )
    with pytest.raises(InputError, match="in a circle"):
        OpenVinoNetwork(net.write(tmp_path, total))


def test_an_unknown_operation_is_named(tmp_path):
    net = Writer()
    xml = net.write(tmp_path, net.add("Swish", net.add("LSTMCell", net.input)))
    with pytest.raises(InputError, match=r"uses LSTMCell, Swish, which unweave does not support \(it supports: Add, "):
        OpenVinoNetwork(xml)


def test_principal_directions_recover_a_known_covariance():
    rng = torch.Generator().manual_seed(0)
    axes = torch.linalg.qr(torch.randn(5, 5, generator=rng, dtype=torch.float64))[0]  # columns
    deviations, mean = torch.tensor([4.0, 2.0, 1.0, 0.5, 0.1]).double(), torch.arange(5.0).double()

    def mapping(z):
        return mean + (z.double() * deviations) @ axes.T

    found = principal_directions(mapping, samples=50_500, count=3, seed=1, width=5)  # not in whole thousands
    assert [t.shape for t in found] == [(5,), (3, 5), (3,)]
    torch.testing.assert_close(found.mean, mean.float(), rtol=0, atol=0.05)
    torch.testing.assert_close(found.deviations, deviations[:3].float(), rtol=0.02, atol=0)
    cosines = (found.components.double() * axes.T[:3]).sum(1)
    assert (cosines.abs() > 0.999).all()
    assert all(row[row.abs().argmax()] > 0 for row in found.components)
    flipped = principal_directions(lambda z: -mapping(z), samples=50_500, count=3, seed=1, width=5)
    torch.testing.assert_close(flipped.components, found.components)
    with pytest.raises(InputError, match="count=6"):
        principal_directions(mapping, count=6, width=5)


def package(folder, monkeypatch):
    """Python finds the package `random_face` in this folder; whoever imports it fails."""
    (folder / "__init__.py").write_text("raise AssertionError('imported')")
    spec = importlib.machinery.ModuleSpec("random_face", None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr(importlib.util, "find_spec", {"random_face": spec}.get)


def test_without_the_package_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    expected = r"pip install 'unweave\[faces\]' \(research use only\)"
    with pytest.raises(MissingData, match=expected):
        find_weights()
    with pytest.raises(MissingData, match=expected):
        face_generator()
    package(tmp_path, monkeypatch)  # installed, but without its data
    with pytest.raises(MissingData, match=expected):
        find_weights()


def test_the_package_is_found_without_an_import_and_checked(monkeypatch, tmp_path):
    package(tmp_path, monkeypatch)
    (tmp_path / "data").mkdir()
    for original in stylegan.FILES:
        (tmp_path / original.file).write_bytes(b"")
    with pytest.raises(InputError, match=r"MappingNetwork\.xml is truncated, altered or another file"):
        find_weights()
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    monkeypatch.setattr(stylegan, "FILES", [PublishedFile(original.file, empty) for original in stylegan.FILES])
    found = find_weights()
    assert found.mapping == tmp_path / "data" / "MappingNetwork.xml"
    assert found.synthesis == tmp_path / "data" / "SynthesisNetwork.xml"


@pytest.fixture(scope="module")
def weights():
    try:
        return find_weights()
    except MissingData as error:
        pytest.skip(str(error))


def test_the_real_networks_give_what_openvino_gives(weights):
    mapping, synthesis = OpenVinoNetwork(weights.mapping), OpenVinoNetwork(weights.synthesis)
    with torch.no_grad():
        w = mapping(torch.linspace(-2, 2, 512)[None])
    # OpenVINO 2026.4.1's own w, and its image as the means of its quarters.
    torch.testing.assert_close(w[0, :4], torch.tensor([-0.31003633, -0.16778746, -0.1270208, -0.23593852]))
    quarters = [
        [[0.4578, 0.3966], [0.7557, 0.4359]],
        [[0.3421, 0.2950], [0.5374, 0.3047]],
        [[0.3001, 0.2593], [0.4525, 0.2664]],
    ]
    images = face_generator(synthesis, size=2)(w)
    torch.testing.assert_close(images[0], torch.tensor(quarters), rtol=0, atol=2e-4)
    assert len(synthesis.slots) == 23


def test_the_real_generator_gives_images_in_range_and_equal_rows_of_w_plus_are_w(weights):
    mean, components, deviations = principal_directions(OpenVinoNetwork(weights.mapping), samples=1_000, count=1)
    render = face_generator()
    w = mean + 2 * deviations * components  # (1, 512)
    images = render(w)
    assert images.shape == (1, 3, 64, 64)
    assert images.isfinite().all()
    assert images.min() >= 0
    assert images.max() <= 1
    assert images.std() > 0.05
    assert torch.equal(render(w[:, None].expand(1, 23, 512)), images)
    layerwise = mean.repeat(1, 23, 1)
    layerwise[:, :6] = w  # the coarse layers only: another picture
    assert (render(layerwise) - images).abs().max() > 0.01
