"""Attributes of images: slant, stroke thickness, size, position, holes, color and sharpness, for whole batches.

Every function takes images (n, h, w) or (n, c, h, w), as a NumPy array or a tensor, floats in [0, 1] or bytes, and
returns one number per image. Lengths and positions are shares of the image's height or width, so they do not depend
on the resolution. Shape is measured on the ink: how much a pixel differs from the background, which is the median of
the image's border. An image without ink has no shape, and a gray one no hue: these attributes are NaN.

Example:
    >>> import numpy as np
    >>> from unweave import attributes
    >>> images = np.zeros((2, 20, 20))
    >>> images[0, 5:15, 8:12] = images[1, 5:15, 6:14] = 1
    >>> attributes.width(images).round(2)
    array([0.2, 0.4])
    >>> attributes.measure(images, ["width", "holes"])["holes"]
    array([0., 0.])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.data.core import split_rows
from unweave.data.pictures import Pictures, gradient_length
from unweave.utils.errors import unknown

MIN_COLOR = 0.01  # mean difference of the channels of an image that has a hue
MAX_ELEMENTS = 2**22  # of the images that are measured at once


class Attribute(NamedTuple):
    """An attribute with its name in words."""

    words: str
    """Name in a sentence, e.g. "width of the upper half"."""
    function: Callable[[Any], Any]
    family: str
    """Attributes of one family vary together: a description names the strongest one."""
    least: float
    """Smallest deviation that counts as variation."""
    unit: str
    """Unit of a value in a text: "°", "%" for a share, or "" for a plain number."""
    period: float | None = None
    """A full turn of an angle; None for ordinary numbers."""


ATTRIBUTES: dict[str, Attribute] = {}


def attribute(
    words: str, family: str, least: float = 0.01, unit: str = "%", period: float | None = None
) -> Callable[[Callable[[Pictures], Tensor]], Callable[[Any], Any]]:
    """Register a function of pictures as an attribute: it then takes arrays or tensors, and returns the same."""

    def register(function: Callable[[Pictures], Tensor]) -> Callable[[Any], Any]:
        @wraps(function)
        def measure_one(images: Any) -> Any:
            values = function(images if isinstance(images, Pictures) else Pictures(images))
            return values if isinstance(images, Tensor) else values.double().numpy(force=True)

        ATTRIBUTES[function.__name__] = Attribute(words, measure_one, family, least, unit, period)
        return measure_one

    return register


def measure(images: Any, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return attributes of images by name, (n,) each.

    Args:
        images: Images (n, h, w) or (n, c, h, w), floats in [0, 1] or bytes.
        names: Names of attributes; default: all.
    """
    for name in names:
        if name not in ATTRIBUTES:
            raise unknown("attribute", name, ATTRIBUTES)
    parts = split_rows(Pictures(images).x, MAX_ELEMENTS // max(1, math.prod(images.shape[1:])))
    each = [{name: ATTRIBUTES[name].function(part) for name in names or ATTRIBUTES} for part in map(Pictures, parts)]
    return {name: np.concatenate([values[name] for values in each]) for name in each[0]}


# Shape ----------------------------------------------------------------------------------------------------------------


@attribute("slant", "slant", least=1.0, unit="°")
def slant(images: Pictures) -> Tensor:
    """Return by how many degrees images lean to the right: 0 for a vertical stroke, 45 for a slash."""
    _, _, variance, mixed = images.moments
    return torch.rad2deg(torch.atan2(-mixed, variance))


@attribute("stroke thickness", "ink")
def thickness(images: Pictures) -> Tensor:
    """Return the thickness of strokes as a share of the image's width: that of a bar with this area and perimeter."""
    area, half = images.ink.sum((1, 2)), images.gradient.sum((1, 2)) / 2
    root = (half.square() - 4 * area).clamp(min=0).sqrt()  # of a bar: area = length t, half = length + t
    return (half - root) / 2 / images.size[1]


@attribute("area", "ink")
def area(images: Pictures) -> Tensor:
    """Return the share of the image that is covered."""
    return images.ink.mean((1, 2))


@attribute("width", "width")
def width(images: Pictures) -> Tensor:
    """Return the distance between the leftmost and the rightmost ink."""
    return _extent(images.ink.amax(1))


@attribute("width of the upper half", "width")
def upper_width(images: Pictures) -> Tensor:
    """Return the width of what is above the middle of the image."""
    return _extent(_half(images.ink, upper=True).amax(1))


@attribute("width of the lower half", "width")
def lower_width(images: Pictures) -> Tensor:
    """Return the width of what is below the middle of the image."""
    return _extent(_half(images.ink, upper=False).amax(1))


@attribute("height", "height")
def height(images: Pictures) -> Tensor:
    """Return the distance between the highest and the lowest ink."""
    return _extent(images.ink.amax(2))


@attribute("height of the upper half", "height")
def upper_height(images: Pictures) -> Tensor:
    """Return how far ink reaches above the middle of the image."""
    return _reach(_half(images.ink, upper=True).amax(2)) / images.size[0]


@attribute("height of the lower half", "height")
def lower_height(images: Pictures) -> Tensor:
    """Return how far ink reaches below the middle of the image."""
    return _reach(_half(images.ink, upper=False).amax(2).flip(1)) / images.size[0]


@attribute("horizontal position", "horizontal position", least=0.015)
def horizontal_position(images: Pictures) -> Tensor:
    """Return the center of mass from the left (0) to the right (1) edge of the image."""
    return images.moments[0] / images.size[1]


@attribute("vertical position", "vertical position", least=0.015)
def vertical_position(images: Pictures) -> Tensor:
    """Return the center of mass from the upper (0) to the lower (1) edge of the image."""
    return images.moments[1] / images.size[0]


@attribute("number of holes", "holes", least=0.05, unit="")
def holes(images: Pictures) -> Tensor:
    """Return the number of regions of background that ink encloses."""
    return images.hole_pixels[0]


@attribute("size of holes", "holes")
def hole_area(images: Pictures) -> Tensor:
    """Return the share of the image that ink encloses."""
    return images.hole_pixels[1] / math.prod(images.size)


# Color and sharpness --------------------------------------------------------------------------------------------------


@attribute("brightness", "ink")
def brightness(images: Pictures) -> Tensor:
    """Return the mean luminance."""
    return images.gray.mean((1, 2))


@attribute("hue", "hue", least=2.0, unit="°", period=360.0)
def hue(images: Pictures) -> Tensor:
    """Return the hue of the mean color in degrees: red 0, green 120, blue 240; NaN for gray images."""
    if images.x.shape[1] == 1:
        return torch.full_like(images.x[:, 0, 0, 0], torch.nan)
    red, green, blue = images.x.mean((2, 3)).T
    degrees = torch.rad2deg(torch.atan2(math.sqrt(3) * (green - blue), 2 * red - green - blue)) % 360
    colored = torch.stack([red, green, blue]).amax(0) - torch.stack([red, green, blue]).amin(0) > MIN_COLOR
    return torch.where(colored, degrees, torch.nan)


@attribute("saturation", "saturation", least=0.01)
def saturation(images: Pictures) -> Tensor:
    """Return the saturation of the colors, bright ones counting most: 0 for gray, 1 for pure colors."""
    value = images.x.amax(1)
    return (value - images.x.amin(1)).sum((1, 2)) / value.sum((1, 2)).clamp(min=1e-9)


@attribute("sharpness", "sharpness", least=0.01, unit="")
def sharpness(images: Pictures) -> Tensor:
    """Return the steepness of edges: 1 if they are one pixel wide, 1 / k if they are spread over k pixels."""
    contrast = images.gray.amax((1, 2)) - images.gray.amin((1, 2))
    steps = gradient_length(images.gray)
    return steps.square().sum((1, 2)) / (contrast * steps.sum((1, 2)))


# Helpers --------------------------------------------------------------------------------------------------------------


def _extent(profile: Tensor) -> Tensor:
    """Return the share of a profile (n, length) between its first and last ink, gaps included."""
    from_left = profile.cummax(1).values
    from_right = profile.flip(1).cummax(1).values.flip(1)
    return torch.minimum(from_left, from_right).mean(1)


def _reach(profile: Tensor) -> Tensor:
    """Return the distance of the first ink of a profile (n, length) from its end, in pixels."""
    return profile.cummax(1).values.sum(1)


def _half(ink: Tensor, *, upper: bool) -> Tensor:
    """Return the rows above or below the middle, (n, h, w) -> (n, h // 2, w); a row in the middle belongs to none."""
    size = ink.shape[1] // 2
    return ink[:, :size] if upper else ink[:, -size:]
