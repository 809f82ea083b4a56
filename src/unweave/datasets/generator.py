"""A face generator: a StyleGAN2 distilled for small machines, read from its OpenVINO files and run in PyTorch.

Letters, as in the StyleGAN papers: z is standard normal, (n, 512); the mapping network makes it w, (n, 512); the
synthesis network makes w an image. W+ gives every layer that reads w its own, (n, slots, 512), from coarse to fine.
"""

from __future__ import annotations

import importlib.util
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from unweave.data.downloads import MissingData, PublishedFile
from unweave.utils.errors import InputError, plural

PACKAGE = "random_face"  # random-face 2021.7.21.1
FILES = (
    PublishedFile("data/MappingNetwork.xml", "sha256:73e2096cad6e696e4af47df2477e048ab4c42c0e0dec83c7c66604822689e55b"),
    PublishedFile("data/MappingNetwork.bin", "sha256:212dd716bdb556e18db603ea97300d4fa3c872b878c726b2402fea80820e7305"),
    PublishedFile(
        "data/SynthesisNetwork.xml", "sha256:7918fce515243954d3e06628cb39a23902d6b1d5d02932cc0c2faee7a2aeeedd"
    ),
    PublishedFile(
        "data/SynthesisNetwork.bin", "sha256:c7da15fa22d508c82e1c30dd6b4cdf67fe3ccdddaf85b310ee764dbf0c289645"
    ),
)


class Weights(NamedTuple):
    """The .xml files of the two networks; each has its .bin beside it."""

    mapping: Path
    synthesis: Path


def find_weights() -> Weights:
    """The networks inside the installed package `random_face`, which is not imported; found and whole, or an error."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    folder = next((f for f in folders if all((f / original.file).is_file() for original in FILES)), None)
    if folder is None:
        raise MissingData(
            "the face generator's weights are not here: pip install 'unweave[faces]' (research use only), "
            "or, without the other packages it asks for, pip install --no-deps random-face==2021.7.21.1"
        )
    for original in FILES:
        original.check(folder / original.file)
    return Weights(folder / FILES[0].file, folder / FILES[2].file)


# Principal directions and images --------------------------------------------------------------------------------


class Directions(NamedTuple):
    """The principal directions of W, the widest first."""

    mean: Tensor  # (512,)
    components: Tensor  # (count, 512), of length 1
    deviations: Tensor  # (count,), the standard deviation of w along each


def principal_directions(
    mapping: Callable[[Tensor], Tensor], samples: int = 10_000, count: int = 10, seed: int = 0, *, width: int = 512
) -> Directions:
    """PCA of w = mapping(z) over standard normal z (GANSpace: Haerkoenen et al., 2020, Sec. 2.2).

    A component's sign is free; here its largest entry, in absolute value, is positive.
    """
    if not 1 <= count <= width or samples <= count:
        raise InputError(
            f"count={count}, samples={samples}: expected 1 to {width} directions of more samples than that"
        )
    rng = Generator().manual_seed(seed)
    total, products = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for start in range(0, samples, 1_000):  # sums only: a million samples would take gigabytes
        with torch.no_grad():
            w = mapping(torch.randn(min(1_000, samples - start), width, generator=rng)).double().cpu()
        total, products = total + w.sum(0), products + w.T @ w  # (512,), (512, 512)
    mean = total / samples
    covariance = (products - samples * mean.outer(mean)) / (samples - 1)
    variances, vectors = torch.linalg.eigh(covariance)  # ascending; vectors in columns
    components = vectors.T.flip(0)[:count]
    largest = components.gather(1, components.abs().argmax(1, keepdim=True))  # (count, 1)
    deviations = variances.flip(0)[:count].clamp(min=0).sqrt()
    return Directions(mean.float(), (components * largest.sign()).float(), deviations.float())


def face_generator(
    synthesis: OpenVinoNetwork | None = None, *, size: int = 64, batch: int = 1
) -> Callable[[Tensor], Tensor]:
    """A function from w, (n, 512), or W+, (n, slots, 512), to images (n, 3, size, size) in [0, 1].

    Without a network, the installed one, on the CPU. Images are averaged down from 1024 x 1024, `batch` at a time, to
    bound the memory; one is fastest on a CPU, a GPU likes more. They come back with the type and on the device of w.
    """
    if size < 1 or batch < 1:
        raise InputError(f"size={size}, batch={batch}: both must be at least 1")
    network = OpenVinoNetwork(find_weights().synthesis) if synthesis is None else synthesis

    def render(w: Tensor) -> Tensor:
        parts = [w.new_zeros(0, 3, size, size)]
        with torch.no_grad():
            for part in torch.split(w, batch) if len(w) else ():
                images = F.interpolate(network(part), size=(size, size), mode="area")  # values about -1 to 1
                parts.append(images.clamp(-1, 1).add(1).div(2).to(w))
        return torch.cat(parts)

    return render


# OpenVINO's files -----------------------------------------------------------------------------------------------

Port = tuple[int, int]  # a value in the graph: the number of the layer that makes it, and of its output


@dataclass(frozen=True)
class Layer:
    """One operation of the graph: where its inputs come from, in order, and the values it makes."""

    name: str
    kind: str
    options: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@final
class OpenVinoNetwork(nn.Module):
    """A network out of OpenVINO's .xml and the .bin beside it, run by PyTorch on any device.

    `forward` takes (n, width). Where the input is only ever multiplied by matrices, as in StyleGAN's synthesis network,
    it takes (n, slots, width) too: a row for each of these products, the one furthest from the output first.
    """

    def __init__(self, xml: str | Path) -> None:
        super().__init__()
        xml = Path(xml)
        layers = read_layers(xml)
        entry, exit_ = (only(xml, layers, kind) for kind in ("Parameter", "Result"))
        order = running_order(xml, layers, exit_)
        check_supported(xml, [layers[i] for i in order])
        self.width = input_width(xml, layers[entry])
        self.entry, self.exit = (entry, layers[entry].outputs[0][1]), layers[exit_].inputs[0]
        self.steps = {i: layers[i] for i in order if layers[i].kind in OPERATIONS}
        self.slots = style_slots(self.steps, self.entry)  # the layers that read a row of W+, and which
        self.finished = last_readings(self.steps, keep=self.exit)
        self.integers: dict[Port, Tensor] = {}  # shapes and axes: they stay on the CPU, where Python reads them
        self.floats: dict[Port, str] = {}  # the names of the buffers, which move to the GPU
        for port, constant in read_constants(xml.with_suffix(".bin"), [layers[i] for i in order]):
            if constant.is_floating_point():
                self.floats[port] = f"constant_{port[0]}"
                self.register_buffer(self.floats[port], constant)
            else:
                self.integers[port] = constant

    def forward(self, w: Tensor) -> Tensor:
        """The network's output for (n, width) or (n, slots, width)."""
        layerwise = w.ndim == 3
        if w.ndim not in (2, 3) or w.shape[-1] != self.width or (layerwise and w.shape[1] != len(self.slots)):
            also = f" or (n, {len(self.slots)}, {self.width})" if self.slots else ""
            raise InputError(f"input of shape {tuple(w.shape)}: expected (n, {self.width}){also}")
        w = w.to(next(self.buffers(), w))  # their type and device
        values = self.integers | {port: self.get_buffer(name) for port, name in self.floats.items()}
        values[self.entry] = w[:, 0] if layerwise else w
        for i, layer in self.steps.items():
            inputs = [values[source] for source in layer.inputs]
            if layerwise and i in self.slots:
                inputs[0] = w[:, self.slots[i]]
            result = OPERATIONS[layer.kind](inputs, layer.options)
            values.update(zip(layer.outputs, result if isinstance(result, tuple) else (result,), strict=True))
            for source in self.finished[i]:  # feature maps are large: none outlives its last reader
                del values[source]
        return values[self.exit]


def read_layers(xml: Path) -> dict[int, Layer]:
    """The graph by the numbers of its layers; a file that holds none is refused by name."""
    try:
        root = ET.parse(xml).getroot()
        elements = {int(element.attrib["id"]): element for element in root.iterfind("layers/layer")}
        inputs: dict[int, dict[int, Port]] = {i: {} for i in elements}
        for edge in root.iterfind("edges/edge"):
            keys = ("to-layer", "to-port", "from-layer", "from-port")
            target, place, source, port = (int(edge.attrib[key]) for key in keys)
            inputs[target][place] = source, port
        layers = {i: read_layer(e, i, [inputs[i][place] for place in sorted(inputs[i])]) for i, e in elements.items()}
        made = {port for layer in layers.values() for port in layer.outputs}
        loose = [n.name for n in layers.values() if not made.issuperset(n.inputs) or not (n.inputs or n.outputs)]
    except (ET.ParseError, KeyError, ValueError, OSError) as error:
        text = f"{type(error).__name__}: {error}"
        raise InputError(f"{xml} is missing, truncated, altered or not OpenVINO's ({text}); get it again") from error
    if loose:
        raise InputError(f"{xml} is altered: its layer {loose[0]!r} has lost a connection; get it again")
    return layers


def read_layer(element: ET.Element, number: int, inputs: Iterable[Port]) -> Layer:
    """One <layer> with its <data> and <output>."""
    data = element.find("data")
    outputs = tuple((number, int(port.attrib["id"])) for port in element.iterfind("output/port"))
    options = {} if data is None else data.attrib
    return Layer(element.attrib["name"], element.attrib["type"], options, tuple(inputs), outputs)


def read_constants(binary: Path, layers: Iterable[Layer]) -> Iterator[tuple[Port, Tensor]]:
    """The constants among the layers; a .bin that does not hold them is refused by name."""
    try:
        raw = binary.read_bytes()
    except OSError as error:
        raise InputError(f"{binary} cannot be read ({error.strerror}): it belongs beside the .xml") from error
    for layer in layers:
        if layer.kind != "Const":
            continue
        try:
            kind, shape = TYPES[layer.options["element_type"]], numbers(layer.options["shape"])
            start, size = int(layer.options["offset"]), int(layer.options["size"])
        except (KeyError, ValueError) as error:
            xml = binary.with_suffix(".xml")
            raise InputError(f"{xml}: the constant {layer.name!r} cannot be read ({error!r})") from error
        if size != math.prod(shape) * np.dtype(kind).itemsize or not 0 <= start <= len(raw) - size:
            raise InputError(
                f"{binary} is truncated or not this network's: the constant {layer.name!r}, {kind} of shape {shape}, "
                f"should be bytes {start:,} to {start + size:,} of {len(raw):,}; get it again"
            )
        values = np.frombuffer(raw, kind, math.prod(shape), start).reshape(shape)
        yield layer.outputs[0], torch.from_numpy(values.copy())


def only(xml: Path, layers: Mapping[int, Layer], kind: str) -> int:
    """The number of the only layer of its kind: a network has one input and one output here."""
    found = [i for i, layer in layers.items() if layer.kind == kind]
    if len(found) != 1:
        raise InputError(f"{xml} has {plural(len(found), f'{kind} layer')}: expected one input and one output")
    return found[0]


def input_width(xml: Path, entry: Layer) -> int:
    """The length of an input row; the number of rows, which the file fixes, is left free."""
    shape = entry.options.get("shape", "").split(",")
    if len(shape) != 2 or not shape[1].strip().isdigit():
        raise InputError(f"{xml} takes an input of shape ({','.join(shape)}): expected rows of numbers, (n, width)")
    return int(shape[1])


def running_order(xml: Path, layers: Mapping[int, Layer], last: int) -> list[int]:
    """The layers that the last one needs, each after those it reads."""
    sources = {i: [source for source, _ in layer.inputs] for i, layer in layers.items()}
    try:
        order = list(TopologicalSorter(sources).static_order())
    except CycleError as error:
        raise InputError(f"{xml} is altered: its layers {error.args[1]} read each other in a circle") from error
    needed = {last}
    for i in reversed(order):
        needed |= set(sources[i]) if i in needed else set()
    return [i for i in order if i in needed]


def check_supported(xml: Path, layers: Sequence[Layer]) -> None:
    """Refuse, by name, operations and options that would not be computed as meant."""
    unknown = sorted({layer.kind for layer in layers} - OPERATIONS.keys() - {"Parameter", "Const", "Result"})
    if unknown:
        known = ", ".join(sorted(OPERATIONS))
        raise InputError(f"{xml} uses {', '.join(unknown)}, which unweave does not know (it knows: {known})")
    for layer in layers:
        for option, value in layer.options.items():
            if option in ASSUMED and value != ASSUMED[option]:
                raise InputError(
                    f"{xml}: {layer.name!r} has {option}={value!r}; unweave knows {ASSUMED[option]!r} only"
                )
        if layer.options.get("pads_begin") != layer.options.get("pads_end"):
            raise InputError(f"{xml}: {layer.name!r} pads one side more than the other, which unweave does not know")


def style_slots(steps: dict[int, Layer], entry: Port) -> dict[int, int]:
    """The products of the input with a matrix, counted from coarse to fine; none where it is read in other ways too."""
    readers = {i: layer for i, layer in steps.items() if entry in layer.inputs and layer.kind != "ShapeOf"}
    if any(layer.kind != "MatMul" or layer.inputs.index(entry) != 0 for layer in readers.values()):
        return {}
    left = dict.fromkeys(steps, 0)  # the most steps that follow a layer: the coarser, the further from the output
    for i in reversed(steps):
        for source, _ in steps[i].inputs:
            if source in left:
                left[source] = max(left[source], left[i] + 1)
    return {i: slot for slot, i in enumerate(sorted(readers, key=lambda i: -left[i]))}


def last_readings(steps: Mapping[int, Layer], keep: Port) -> dict[int, list[Port]]:
    """For each step the values that no later one reads."""
    last = {source: i for i, layer in steps.items() for source in layer.inputs if source != keep}
    return {i: [source for source, reader in last.items() if reader == i] for i in steps}


def numbers(text: str) -> list[int]:
    """Whole numbers as the files write them: "2, 1"; none for ""."""
    return [int(part) for part in text.split(",") if part.strip()]


# The operations, with inputs and options as docs.openvino.ai defines them -----------------------------------------

Options = Mapping[str, str]
Operation = Callable[[list[Tensor], Options], Tensor | tuple[Tensor, ...]]

TYPES = {"f32": "<f4", "i32": "<i4", "i64": "<i8"}
ASSUMED = {"auto_broadcast": "numpy", "auto_pad": "explicit", "batch_dims": "0", "output_padding": "0, 0"}


def matmul(inputs: list[Tensor], options: Options) -> Tensor:
    """A product of matrices, either of them transposed first if the options say so."""
    a, b = inputs
    return (a.mT if flag(options, "transpose_a") else a) @ (b.mT if flag(options, "transpose_b") else b)


def reshape(inputs: list[Tensor], options: Options) -> Tensor:
    """To the shape in the second input; there 0 may mean "as before"."""
    x, shape = inputs[0], inputs[1].tolist()
    if flag(options, "special_zero"):
        shape = [x.shape[axis] if length == 0 else length for axis, length in enumerate(shape)]
    return x.reshape(shape)


def unsqueeze(inputs: list[Tensor], _: Options) -> Tensor:
    """New axes of length 1, at places counted in the result."""
    x, places = inputs[0], inputs[1].reshape(-1).tolist()
    for axis in sorted(place % (x.ndim + len(places)) for place in places):
        x = x.unsqueeze(axis)
    return x


def gather(inputs: list[Tensor], _: Options) -> Tensor:
    """Entries along an axis, by their numbers."""
    x, index, axis = inputs
    return x[(slice(None),) * (int(axis) % x.ndim) + (index.long().to(x.device),)]


def variadic_split(inputs: list[Tensor], _: Options) -> tuple[Tensor, ...]:
    """Pieces along an axis; one length may be -1, the rest."""
    x, axis, lengths = inputs[0], int(inputs[1]), inputs[2].tolist()
    rest = x.shape[axis] - sum(length for length in lengths if length >= 0)
    return tuple(torch.split(x, [rest if length < 0 else length for length in lengths], axis))


def broadcast(inputs: list[Tensor], options: Options) -> Tensor:
    """To the shape in the second input, or to the one that both fit."""
    x, shape = inputs[0], inputs[1].tolist()
    return x.broadcast_to(np.broadcast_shapes(x.shape, shape) if options.get("mode") == "bidirectional" else shape)


def convolution(inputs: list[Tensor], options: Options) -> Tensor:
    """Weights (out, in, height, width), or with the number of the group first."""
    x, weights = inputs
    groups, weights = (len(weights), weights.flatten(0, 1)) if weights.ndim == 5 else (1, weights)
    stride, padding, dilation = (numbers(options[key]) for key in ("strides", "pads_begin", "dilations"))
    return F.conv2d(x, weights, None, stride, padding, dilation, groups)


def transposed_convolution(inputs: list[Tensor], options: Options) -> Tensor:
    """Weights (group, in, out, height, width)."""
    x, weights = inputs
    stride, padding, dilation = (numbers(options[key]) for key in ("strides", "pads_begin", "dilations"))
    return F.conv_transpose2d(x, weights.flatten(0, 1), None, stride, padding, 0, len(weights), dilation)


def flag(options: Options, name: str) -> bool:
    """Whether an option is there and true."""
    return options.get(name, "").lower() in ("true", "1")


OPERATIONS: dict[str, Operation] = {
    "Add": lambda inputs, _: inputs[0] + inputs[1],
    "Broadcast": broadcast,
    "Concat": lambda inputs, options: torch.cat(inputs, int(options["axis"])),
    "Convolution": convolution,
    "Gather": gather,
    "GroupConvolution": convolution,
    "GroupConvolutionBackpropData": transposed_convolution,
    "MatMul": matmul,
    "Multiply": lambda inputs, _: inputs[0] * inputs[1],
    "PReLU": lambda inputs, _: F.prelu(inputs[0], inputs[1].flatten()),
    "Power": lambda inputs, _: inputs[0] ** inputs[1],
    "ReduceMean": lambda inputs, options: inputs[0].mean(inputs[1].flatten().tolist(), flag(options, "keep_dims")),
    "Reshape": reshape,
    "ShapeOf": lambda inputs, _: torch.tensor(inputs[0].shape),
    "Squeeze": lambda inputs, _: inputs[0].squeeze(inputs[1].flatten().tolist()),
    "Tile": lambda inputs, _: inputs[0].repeat(inputs[1].tolist()),
    "Unsqueeze": unsqueeze,
    "VariadicSplit": variadic_split,
}
