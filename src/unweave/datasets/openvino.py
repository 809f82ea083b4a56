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

ELEMENT_TYPES = {"f32": "<f4", "i32": "<i4", "i64": "<i8"}
ASSUMED_OPTIONS = {"auto_broadcast": "numpy", "auto_pad": "explicit", "batch_dims": "0", "output_padding": "0, 0"}

Port = tuple[int, int]  # a value in the graph: the number of its layer and of the output


@dataclass(frozen=True)
class Layer:
    """One operation of the graph, with the ports of its inputs and outputs, in order."""

    name: str
    kind: str
    options: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@final
class OpenVinoNetwork(nn.Module):
    """A network from OpenVINO's .xml and the .bin beside it, run by PyTorch on any device.

    `forward` takes (n, width). If the input is only multiplied by matrices, as in StyleGAN's synthesis network, it also
    takes (n, slots, width): one row for each of these products, the one furthest from the output first.
    """

    def __init__(self, xml: str | Path) -> None:
        super().__init__()
        xml = Path(xml)
        layers = read_layers(xml)
        entry, exit_ = (find_only(xml, layers, kind) for kind in ("Parameter", "Result"))
        order = execution_order(xml, layers, exit_)
        check_supported(xml, [layers[i] for i in order])
        self.width = input_width(xml, layers[entry])
        self.entry, self.exit = (entry, layers[entry].outputs[0][1]), layers[exit_].inputs[0]
        self.steps = {i: layers[i] for i in order if layers[i].kind in OPERATIONS}
        self.slots = style_slots(self.steps, self.entry)  # the layers that read a row of W+, and which
        self.finished = last_uses(self.steps, keep=self.exit)
        self.integers: dict[Port, Tensor] = {}  # shapes and axes stay on the CPU, where Python reads them
        self.floats: dict[Port, str] = {}  # names of buffers, which move to the device
        for port, constant in read_constants(xml.with_suffix(".bin"), [layers[i] for i in order]):
            if constant.is_floating_point():
                self.floats[port] = f"constant_{port[0]}"
                self.register_buffer(self.floats[port], constant)
            else:
                self.integers[port] = constant

    def forward(self, w: Tensor) -> Tensor:
        """Return the output for an input (n, width) or (n, slots, width)."""
        layerwise = w.ndim == 3
        if w.ndim not in (2, 3) or w.shape[-1] != self.width or (layerwise and w.shape[1] != len(self.slots)):
            also = f" or (n, {len(self.slots)}, {self.width})" if self.slots else ""
            raise InputError(f"input of shape {tuple(w.shape)}: expected (n, {self.width}){also}")
        w = w.to(next(self.buffers(), w))  # their dtype and device
        values = self.integers | {port: self.get_buffer(name) for port, name in self.floats.items()}
        values[self.entry] = w[:, 0] if layerwise else w
        for i, layer in self.steps.items():
            inputs = [values[source] for source in layer.inputs]
            if layerwise and i in self.slots:
                inputs[0] = w[:, self.slots[i]]
            result = OPERATIONS[layer.kind](inputs, layer.options)
            values.update(zip(layer.outputs, result if isinstance(result, tuple) else (result,), strict=True))
            for source in self.finished[i]:  # frees large feature maps after their last use
                del values[source]
        return values[self.exit]


def read_layers(xml: Path) -> dict[int, Layer]:
    """Return the layers of the graph by number, or raise an error that names the file."""
    try:
        root = ET.parse(xml).getroot()
        elements = {int(element.attrib["id"]): element for element in root.iterfind("layers/layer")}
        inputs: dict[int, dict[int, Port]] = {i: {} for i in elements}
        for edge in root.iterfind("edges/edge"):
            keys = ("to-layer", "to-port", "from-layer", "from-port")
            target, place, source, port = (int(edge.attrib[key]) for key in keys)
            inputs[target][place] = source, port
        layers = {i: read_layer(e, i, [inputs[i][place] for place in sorted(inputs[i])]) for i, e in elements.items()}
        ports = {port for layer in layers.values() for port in layer.outputs}
        loose = [n.name for n in layers.values() if not ports.issuperset(n.inputs) or not (n.inputs or n.outputs)]
    except (ET.ParseError, KeyError, ValueError, OSError) as error:
        text = f"{type(error).__name__}: {error}"
        raise InputError(f"{xml} is missing, truncated, altered or not OpenVINO's ({text}); get it again") from error
    if loose:
        raise InputError(f"{xml} is altered: its layer {loose[0]!r} has lost a connection; get it again")
    return layers


def read_layer(element: ET.Element, number: int, inputs: Iterable[Port]) -> Layer:
    """Return one <layer> with its <data> and <output>."""
    data = element.find("data")
    outputs = tuple((number, int(port.attrib["id"])) for port in element.iterfind("output/port"))
    options = {} if data is None else data.attrib
    return Layer(element.attrib["name"], element.attrib["type"], options, tuple(inputs), outputs)


def read_constants(binary: Path, layers: Iterable[Layer]) -> Iterator[tuple[Port, Tensor]]:
    """Yield the constants of the layers, or raise an error that names the .bin file."""
    try:
        raw = binary.read_bytes()
    except OSError as error:
        raise InputError(f"{binary} cannot be read ({error.strerror}): it belongs beside the .xml") from error
    for layer in layers:
        if layer.kind != "Const":
            continue
        try:
            element_type, shape = ELEMENT_TYPES[layer.options["element_type"]], parse_integers(layer.options["shape"])
            start, size = int(layer.options["offset"]), int(layer.options["size"])
        except (KeyError, ValueError) as error:
            xml = binary.with_suffix(".xml")
            raise InputError(f"{xml}: the constant {layer.name!r} cannot be read ({error!r})") from error
        if size != math.prod(shape) * np.dtype(element_type).itemsize or not 0 <= start <= len(raw) - size:
            text = f"{binary} is truncated or not of this network: the constant {layer.name!r}"
            where = f"bytes {start:,} to {start + size:,} of {len(raw):,}"
            raise InputError(f"{text}, {element_type} of shape {shape}, should be {where}; get it again")
        values = np.frombuffer(raw, element_type, math.prod(shape), start).reshape(shape)
        yield layer.outputs[0], torch.from_numpy(values.copy())


def find_only(xml: Path, layers: Mapping[int, Layer], kind: str) -> int:
    """Return the number of the only layer of a kind: a network must have one input and one output."""
    matches = [i for i, layer in layers.items() if layer.kind == kind]
    if len(matches) != 1:
        raise InputError(f"{xml} has {plural(len(matches), f'{kind} layer')}: expected one input and one output")
    return matches[0]


def input_width(xml: Path, entry: Layer) -> int:
    """Return the length of an input row; the number of rows, which the file fixes, is free here."""
    shape = entry.options.get("shape", "").split(",")
    if len(shape) != 2 or not shape[1].strip().isdigit():
        raise InputError(f"{xml} takes an input of shape ({','.join(shape)}): expected rows of numbers, (n, width)")
    return int(shape[1])


def execution_order(xml: Path, layers: Mapping[int, Layer], last: int) -> list[int]:
    """Return the layers that the last one depends on, each after its inputs."""
    sources = {i: [source for source, _ in layer.inputs] for i, layer in layers.items()}
    try:
        order = list(TopologicalSorter(sources).static_order())
    except CycleError as error:
        raise InputError(f"{xml} is altered: its layers {error.args[1]} read each other in a circle") from error
    required = {last}
    for i in reversed(order):
        required |= set(sources[i]) if i in required else set()
    return [i for i in order if i in required]


def check_supported(xml: Path, layers: Sequence[Layer]) -> None:
    """Raise an error for operations and options that are not supported."""
    unknown = sorted({layer.kind for layer in layers} - OPERATIONS.keys() - {"Parameter", "Const", "Result"})
    if unknown:
        supported = ", ".join(sorted(OPERATIONS))
        raise InputError(f"{xml} uses {', '.join(unknown)}, which unweave does not support (it supports: {supported})")
    for layer in layers:
        for option, value in layer.options.items():
            if option in ASSUMED_OPTIONS and value != ASSUMED_OPTIONS[option]:
                raise InputError(
                    f"{xml}: {layer.name!r} has {option}={value!r}; unweave supports only {ASSUMED_OPTIONS[option]!r}"
                )
        if layer.options.get("pads_begin") != layer.options.get("pads_end"):
            raise InputError(f"{xml}: {layer.name!r} pads one side more than the other, which unweave does not support")


def style_slots(steps: dict[int, Layer], entry: Port) -> dict[int, int]:
    """Return the slot in W+ of each product of the input with a matrix, coarse to fine; empty for other uses."""
    readers = {i: layer for i, layer in steps.items() if entry in layer.inputs and layer.kind != "ShapeOf"}
    if any(layer.kind != "MatMul" or layer.inputs.index(entry) != 0 for layer in readers.values()):
        return {}
    depth = dict.fromkeys(steps, 0)  # most steps after a layer: coarse layers are far from the output
    for i in reversed(steps):
        for source, _ in steps[i].inputs:
            if source in depth:
                depth[source] = max(depth[source], depth[i] + 1)
    return {i: slot for slot, i in enumerate(sorted(readers, key=lambda i: -depth[i]))}


def last_uses(steps: Mapping[int, Layer], keep: Port) -> dict[int, list[Port]]:
    """Return for each step the values that no later step reads."""
    last = {source: i for i, layer in steps.items() for source in layer.inputs if source != keep}
    return {i: [source for source, reader in last.items() if reader == i] for i in steps}
