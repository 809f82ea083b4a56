"""Run a network stored in OpenVINO's format (.xml and .bin) with PyTorch."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from unweave.datasets.openvino_operations import OPERATIONS, parse_integers
from unweave.utils.errors import InputError, plural

TYPES = {"f32": "<f4", "i32": "<i4", "i64": "<i8"}
ASSUMED = {"auto_broadcast": "numpy", "auto_pad": "explicit", "batch_dims": "0", "output_padding": "0, 0"}

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
            kind, shape = TYPES[layer.options["element_type"]], parse_integers(layer.options["shape"])
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
