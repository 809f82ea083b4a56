"""A turntable with an object of colored boxes and balls, drawn by ray casting: images whose angle is known."""

from typing import NamedTuple

import numpy as np

ELEVATION = 0.45  # of the camera, in radians
VIEW_WIDTH = 2.6
BACKGROUND, PLATE = 0.5, (0.75, 0.72, 0.7)
PLATE_RADIUS = 1.05
AMBIENT = 0.3


class Body(NamedTuple):
    """A box or a ball: its center (3,), half of its sides or its radius (3,), and its color (3,)."""

    is_box: bool
    center: np.ndarray
    size: np.ndarray
    color: np.ndarray


def random_object(seed: int, parts: int = 7) -> list[Body]:
    """An object without symmetry: balls and boxes at random places of the plate."""
    rng = np.random.default_rng(seed)
    bodies = []
    for part in range(parts):
        radius, turn, height = rng.uniform(0.12, 0.6), rng.uniform(0, 2 * np.pi), rng.uniform(0.12, 0.45)
        center = np.array([radius * np.cos(turn), radius * np.sin(turn), 0.8 * height])
        size = np.array([*rng.uniform(0.12, 0.4, 2), height]) if part % 2 else np.full(3, 0.8 * height)
        bodies.append(Body(bool(part % 2), center, size, rng.uniform(0.15, 1, 3)))
    return bodies


def symmetric_object(seed: int, fold: int) -> list[Body]:
    """An object that looks the same after a turn by 360 / fold degrees: balls around the axis."""
    rng = np.random.default_rng(seed)
    bodies = []
    for _ in range(3):
        radius, turn, height = rng.uniform(0.3, 0.6), rng.uniform(0, 2 * np.pi), rng.uniform(0.15, 0.4)
        color, size = rng.uniform(0.15, 1, 3), np.full(3, 0.8 * height)
        for angle in turn + 2 * np.pi * np.arange(fold) / fold:
            center = np.array([radius * np.cos(angle), radius * np.sin(angle), height])
            bodies.append(Body(False, center, size, color))
    return bodies


def photograph(
    bodies: list[Body], angles: np.ndarray, lights: np.ndarray | float = 0.0, size: int = 64, rays: int = 2
) -> np.ndarray:
    """Images of an object turned by angles (n,) in radians, (n, 3, size, size), floats from 0 to 1.

    `lights` (n,) are azimuths of the lamp in radians, `rays` squared the number of rays for each pixel.
    """
    grid = VIEW_WIDTH * ((np.arange(size * rays) + 0.5) / (size * rays) - 0.5)
    u, v = np.meshgrid(grid, -grid)
    up, ahead = (
        np.array([0, np.sin(ELEVATION), np.cos(ELEVATION)]),
        np.array([0, np.cos(ELEVATION), -np.sin(ELEVATION)]),
    )
    start = (u[..., None] * np.array([1.0, 0, 0]) + v[..., None] * up - 5 * ahead + [0, 0, 0.3]).reshape(-1, 3)
    images = np.empty((len(angles), 3, size, size), np.float32)
    for image, angle, light in zip(images, angles, np.broadcast_to(lights, len(angles)), strict=True):
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])  # the camera and the lamp turn around the object
        lamp = np.array([0.7 * np.sin(light), -0.7 * np.cos(light), 0.75])
        pixels = cast_rays(bodies, start @ turn, ahead @ turn, lamp / np.linalg.norm(lamp) @ turn)
        image[:] = pixels.reshape(size, rays, size, rays, 3).mean((1, 3)).transpose(2, 0, 1)
    return images


def cast_rays(bodies: list[Body], start: np.ndarray, ahead: np.ndarray, lamp: np.ndarray) -> np.ndarray:
    """Colors (r, 3) that rays from `start` (r, 3) along `ahead` (3,) see, with a lamp in direction `lamp` (3,)."""
    color = np.full((len(start), 3), BACKGROUND)
    depth = np.full(len(start), np.inf)
    plate = -start[:, 2] / ahead[2]
    on_plate = np.linalg.norm((start + plate[:, None] * ahead)[:, :2], axis=1) < PLATE_RADIUS
    depth[on_plate], color[on_plate] = plate[on_plate], np.array(PLATE) * (AMBIENT + (1 - AMBIENT) * lamp[2])
    for body in bodies:
        distance, normal = (hit_box if body.is_box else hit_ball)(body, start, ahead)
        seen = distance < depth
        shade = AMBIENT + (1 - AMBIENT) * np.maximum(normal[seen] @ lamp, 0)
        depth[seen], color[seen] = distance[seen], body.color * shade[:, None]
    return color


def hit_ball(ball: Body, start: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance to a ball along each ray (r,), infinite if it misses, and the normal there (r, 3)."""
    offset, radius = start - ball.center, ball.size[0]
    along = offset @ ahead
    root = along**2 - (offset**2).sum(1) + radius**2
    distance = np.where(root > 0, -along - np.sqrt(np.maximum(root, 0)), np.inf)
    return distance, (offset + np.where(root > 0, distance, 0)[:, None] * ahead) / radius


def hit_box(box: Body, start: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance to a box along each ray (r,), infinite if it misses, and the normal there (r, 3)."""
    slope = np.where(np.abs(ahead) < 1e-12, 1e-12, ahead)
    one, other = (box.center - box.size - start) / slope, (box.center + box.size - start) / slope
    enter, leave = np.minimum(one, other), np.maximum(one, other).min(1)
    axis = enter.argmax(1)
    normal = np.zeros_like(start)
    normal[np.arange(len(start)), axis] = -np.sign(slope[axis])
    return np.where(enter.max(1) < leave, enter.max(1), np.inf), normal


def angle_error(codes: np.ndarray, angles: np.ndarray, period: float = 2 * np.pi) -> float:
    """Median error in degrees, after the offset and the direction that make it smallest; `period` of the truth."""
    codes, angles = codes * period / (2 * np.pi), angles % period
    errors = []
    for direction in (1, -1):
        turn = (direction * codes - angles) * 2 * np.pi / period
        for offset in np.angle(np.exp(1j * turn).mean()) + np.linspace(-0.5, 0.5, 201):
            errors.append(np.median(np.abs(np.angle(np.exp(1j * (turn - offset))))))
    return float(np.degrees(min(errors)) * period / (2 * np.pi))
