"""A look-alike of MPI3D: a robot arm with an object, rendered with MuJoCo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import final

import numpy as np

from unweave.data.core import Factor
from unweave.datasets.cached_images import CachedImages, Notify
from unweave.datasets.mpi3d import FACTORS
from unweave.datasets.mujoco_scene import SIZE, Scene, import_mujoco
from unweave.utils.errors import InputError, plural

ARM_XML = """
<mujoco>
  <compiler angle="degree"/>
  <visual>
    <headlight ambient=".30 .30 .30" diffuse=".25 .25 .25" specular="0 0 0"/>
    <quality shadowsize="512" offsamples="4"/>
    <map znear="0.05" zfar="30"/>
    <global fovy="40" offwidth="64" offheight="64"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1=".05 .06 .06" rgb2=".12 .13 .13" width="32" height="192"/>
    <material name="band" specular="0"/>
    <material name="floor" rgba=".2 .22 .21 1" specular=".1" reflectance="0"/>
    <material name="metal" rgba=".32 .33 .34 1" specular=".6" shininess=".6"/>
    {meshes}
  </asset>
  <worldbody>
    <light type="directional" pos="-2 -2 4" dir=".4 .5 -1" diffuse=".6 .6 .6" specular=".3 .3 .3" castshadow="true"/>
    <geom type="cylinder" size="1.9 .01" pos="0 0 -.01" material="floor"/>
    {band}
    <geom type="cylinder" size=".13 .03" pos="0 0 .03" material="metal"/>
    <geom type="cylinder" size=".07 .25" pos="0 0 .28" material="metal"/>
    <body pos="0 0 .56">
      <joint type="hinge" axis="0 0 1"/>
      <geom type="sphere" size=".075" material="metal"/>
      <body>
        <joint type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 .42" size=".025" material="metal"/>
        {objects}
      </body>
    </body>
  </worldbody>
</mujoco>"""

# What the arm can hold: the type of the body in MuJoCo, and its large size; the last number is half its height.
OBJECTS = {
    "cone": ("mesh", (0.15, 0.15, 0.15)),
    "cube": ("box", (0.12, 0.12, 0.12)),
    "cylinder": ("cylinder", (0.12, 0.13)),
    "hexagonal": ("mesh", (0.14, 0.14, 0.13)),
    "pyramid": ("mesh", (0.13, 0.13, 0.15)),
    "sphere": ("sphere", (0.14,)),
}
COLORS = (  # white, green, red, blue, brown, olive
    (0.9, 0.9, 0.88),
    (0.15, 0.6, 0.25),
    (0.85, 0.1, 0.1),
    (0.1, 0.25, 0.85),
    (0.4, 0.22, 0.12),
    (0.5, 0.5, 0.15),
)
BACKGROUNDS = ((0.38, 0.33, 0.68), (0.25, 0.55, 0.45), (0.75, 0.42, 0.42))  # purple, sea green, salmon
CAMERAS = ((-50.0, 2.9), (-32.0, 2.9), (-12.0, 2.7))  # elevation and distance, from the top, the middle and the bottom
SCALES = (0.62, 1.0)  # small, large
JOINT_ANGLES = np.deg2rad(np.linspace(-90, 90, 40))  # radians, of both joints


def make_arm(scale: float) -> Scene:
    """Return the robot arm with all objects at one scale, since a mesh cannot be scaled once it is compiled."""
    meshes, objects = [], []
    for name, (kind, size) in OBJECTS.items():
        numbers = " ".join(f"{scale * s:.4f}" for s in size)
        if kind == "mesh":
            corners = " ".join(f"{x:.4f}" for corner in _corners(name) for x in corner)
            meshes.append(f'<mesh name="{name}" vertex="{corners}" scale="{numbers}"/>')
        form = f'mesh="{name}"' if kind == "mesh" else f'size="{numbers}"'
        center = 0.41 + scale * size[-1]  # so that the arm, which ends at 0.445, reaches into it
        objects.append(f'<geom name="{name}" type="{kind}" {form} pos="0 0 {center:.4f}"/>')
    lists = {"meshes": meshes, "objects": objects, "band": _band()}
    return Scene(ARM_XML.format(**{key: "\n".join(value) for key, value in lists.items()}), look_at=(0, 0, 0.55))


def _corners(name: str) -> list[tuple[float, float, float]]:
    """Return the corners of a solid that fills the cube from -1 to 1."""
    if name == "pyramid":
        return [*product((-1.0, 1.0), (-1.0, 1.0), (-1.0,)), (0, 0, 1)]
    if name == "cone":
        return [*_ring(24, -1), (0, 0, 1)]
    return [*_ring(6, -1), *_ring(6, 1)]


def _ring(number: int, height: float) -> list[tuple[float, float, float]]:
    """Return points on the unit circle at a height."""
    turns = [2 * math.pi * k / number for k in range(number)]
    return [(math.cos(turn), math.sin(turn), height) for turn in turns]


def _band() -> list[str]:
    """Return the colored band around the floor as many short boxes."""
    return [
        f'<geom type="box" pos="{1.75 * x:.4f} {1.75 * y:.4f} .07" size=".012 .095 .07" '
        f'euler="0 0 {6 * k}" material="band"/>'
        for k, (x, y, _) in enumerate(_ring(60, 0))
    ]


def render_arm(scene: Scene, combination: Sequence[int]) -> np.ndarray:
    """Render the arm with one object, (64, 64, 3) bytes; `combination` holds the seven factors of MPI3D."""
    color, shape, _, camera, background, horizontal, vertical = combination
    for i, name in enumerate(OBJECTS):
        scene.paint(name, COLORS[color] if i == shape else None)
    scene.paint_material("band", BACKGROUNDS[background])
    scene.state.qpos[:] = JOINT_ANGLES[horizontal], JOINT_ANGLES[vertical]
    elevation, distance = CAMERAS[camera]
    scene.place_camera(90, elevation, distance)
    return scene.render()


def render_mpi3d(combinations: np.ndarray, notify: Notify = lambda text: None) -> np.ndarray:
    """Render combinations of factors, (n, 7) -> (n, 64, 64, 3) bytes; slow: 20 to 40 images a second on two cores."""
    images = np.zeros((len(combinations), SIZE, SIZE, 3), np.uint8)
    done = 0
    for size, scale in enumerate(SCALES):
        rows = np.flatnonzero(combinations[:, 2] == size)
        with make_arm(scale) as scene:
            for row in rows:
                if done % 50 == 0:
                    notify(f"rendering: {done:,} of {plural(len(combinations), 'image')}")
                images[row] = render_arm(scene, combinations[row].tolist())
                done += 1
    return images


@final
class MPI3DLike(CachedImages):
    """A look-alike of MPI3D (Gondal et al., 2019): a robot arm with an object, a random subset of all combinations.

    Rendered once with MuJoCo (the extra `render`), then read from the cache folder. No two images have the same
    factors. The horizontal angle is hardly visible where the arm stands upright (vertical 19 and 20). Pixels may
    differ slightly between graphics libraries.

    Example:
        >>> data = MPI3DLike(points=500).load()  # doctest: +SKIP
        >>> data.shape  # doctest: +SKIP
        (3, 64, 64)
    """

    name = "mpi3d-like"
    paper = "after Gondal et al. (2019)"
    version = 1

    def title(self) -> str:
        return "mpi3d (look-alike)"

    def check_requirements(self) -> None:
        self.combinations()
        import_mujoco()

    def render_images(self, notify: Notify) -> tuple[np.ndarray, np.ndarray]:
        combinations = self.combinations()
        return render_mpi3d(combinations, notify), combinations

    def image_factors(self) -> tuple[Factor, ...]:
        return FACTORS

    def combinations(self) -> np.ndarray:
        """Draw combinations of factors without repetition, (points, 7)."""
        sizes = [factor.size or 0 for factor in FACTORS]
        count = math.prod(sizes)
        if not 1 <= self.points <= count:
            raise InputError(f"points={self.points}: expected from 1 to {count:,}, the number of combinations")
        rows = np.random.default_rng(self.seed).choice(count, self.points, replace=False)
        return np.stack(np.unravel_index(rows, sizes), 1)
