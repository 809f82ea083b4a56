"""Images with what several of their attributes share: ink, moments, edges and holes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.ndimage import label
from torch import Tensor

from unweave.utils.errors import InputError

MIN_INK = 0.1  # share of the largest difference from the background, below which a pixel is background
MIN_CONTRAST = 0.02  # of an image that has something to see
LUMINANCE = (0.299, 0.587, 0.114)  # weights of red, green and blue


class Pictures:
    """Images with what several attributes share, each computed once."""

    def __init__(self, images: Any) -> None:
        x = images if isinstance(images, Tensor) else torch.from_numpy(np.ascontiguousarray(images))
        if x.ndim not in (3, 4) or (x.ndim == 4 and x.shape[1] not in (1, 3)):
            raise InputError(f"images of shape {tuple(x.shape)}: expected (n, h, w), (n, 1, h, w) or (n, 3, h, w)")
        x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
        self.x = x if x.ndim == 4 else x[:, None]  # (n, c, h, w)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return int(self.x.shape[2]), int(self.x.shape[3])

    @cached_property
    def gray(self) -> Tensor:
        """Luminance, (n, h, w)."""
        if self.x.shape[1] == 1:
            return self.x[:, 0]
        return torch.einsum("nchw,c->nhw", self.x, self.x.new_tensor(LUMINANCE))

    @cached_property
    def ink(self) -> Tensor:
        """Difference from the background, (n, h, w): 1 where it is largest; NaN without any contrast."""
        border = [self.x[..., 0, :], self.x[..., -1, :], self.x[..., :, 0], self.x[..., :, -1]]
        background = torch.cat(border, -1).median(-1).values  # (n, c)
        difference = (self.x - background[..., None, None]).abs().amax(1)
        largest = difference.amax((1, 2), keepdim=True)
        ink = torch.where(largest > MIN_CONTRAST, difference / largest, torch.nan)
        return torch.where(ink < MIN_INK, 0.0, ink)

    @cached_property
    def moments(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return mean column and row, the variance of rows, and their covariance with columns, (n,) each in pixels."""
        height, width = self.size
        mass = self.ink.sum((1, 2))
        columns = torch.arange(width, device=self.x.device) + 0.5
        rows = torch.arange(height, device=self.x.device) + 0.5
        of_column, of_row = self.ink.sum(1) / mass[:, None], self.ink.sum(2) / mass[:, None]
        x, y = of_column @ columns, of_row @ rows
        variance = (of_row * (rows - y[:, None]).square()).sum(1)
        mixed = torch.einsum("nhw,h,w->n", self.ink, rows, columns) / mass - x * y
        return x, y, variance, mixed

    @cached_property
    def gradient(self) -> Tensor:
        """Length of the gradient of the ink between four pixels, (n, h - 1, w - 1)."""
        return gradient_length(self.ink)

    @cached_property
    def hole_pixels(self) -> tuple[Tensor, Tensor]:
        """Return the number of holes, and the pixels in them, (n,) each."""
        return count_holes(self.ink)


def gradient_length(values: Tensor) -> Tensor:
    """Return the length of the gradient between four pixels, (n, h, w) -> (n, h - 1, w - 1).

    It is the same in mirrored images, unlike that of differences to the next column and row.
    """
    right, down = torch.diff(values, dim=2), torch.diff(values, dim=1)
    right, down = (right[:, 1:] + right[:, :-1]) / 2, (down[:, :, 1:] + down[:, :, :-1]) / 2
    return (right.square() + down.square()).sqrt()


def count_holes(ink: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of regions of background that do not reach the border, and their pixels, (n,) each."""
    solid = (ink > 0.5).numpy(force=True)  # NaN is no ink: an empty image has no holes
    background = np.pad(~solid, ((0, 0), (1, 1), (1, 1)), constant_values=True)  # so that the outside is one region
    within = np.zeros((3, 3, 3), int)  # neighbors of the same image, without diagonals
    within[1, 1, :] = within[1, :, 1] = 1
    regions, total = label(background, within)
    image_of_region = np.zeros(total + 1, int)
    image_of_region[regions] = np.arange(len(solid))[:, None, None]
    count = np.bincount(image_of_region[1:], minlength=len(solid)) - 1  # without the outside
    outside = regions == regions[:, :1, :1]
    inside = (background & ~outside).sum((1, 2))
    return ink.new_tensor(count), ink.new_tensor(inside)
