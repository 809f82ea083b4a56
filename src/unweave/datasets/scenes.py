"""Scenes rendered with MuJoCo (the extra `render`): the geometries of our 3DShapes, and a look-alike of MPI3D."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from itertools import product
from typing import Any, final

import numpy as np

from unweave.data.core import Factor
from unweave.data.downloads import MissingData
from unweave.datasets._kept import KeptImages, Notify
from unweave.datasets.mpi3d import FACTORS
from unweave.datasets.shapes3d import HUES
from unweave.utils.errors import InputError, plural

Color = Sequence[float]

SIZE = 64  # pixels
BLACK, WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
HEADLESS = "a machine without a screen wants the environment variable MUJOCO_GL=egl or MUJOCO_GL=osmesa"


# MuJoCo ---------------------------------------------------------------------------------------------------------


def mujoco() -> Any:
    """The module of that name, or an error that says how to get it."""
    try:
        return importlib.import_module("mujoco")
    except ModuleNotFoundError as error:
        raise MissingData(
            f"rendering needs MuJoCo ({error}); install the extra: pip install 'unweave[render]'; {HEADLESS}"
        ) from error
    except Exception as error:  # a graphics library that MUJOCO_GL names and that is not here, in many disguises
        raise MissingData(f"MuJoCo cannot be imported ({type(error).__name__}: {error}); {HEADLESS}") from error


@final
class Scene:
    """A compiled world, a camera and a renderer. Use it in a `with`: it holds graphics memory."""

    def __init__(self, xml: str, look_at: tuple[float, float, float]) -> None:
        self.library = mujoco()
        self.model = self.library.MjModel.from_xml_string(xml)
        self.state = self.library.MjData(self.model)
        self.camera = self.library.MjvCamera()
        self.camera.lookat[:] = look_at
        try:
            self.renderer = self.library.Renderer(self.model, SIZE, SIZE)
        except Exception as error:  # each graphics library has its own; all mean that nothing can be drawn here
            raise MissingData(
                f"MuJoCo is installed but cannot draw ({type(error).__name__}: {error}); {HEADLESS}"
            ) from error

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.renderer.close()

    def paint_material(self, name: str, color: Color) -> None:
        """Give everything that is made of a material another color."""
        self.model.material(name).rgba = (*color, 1)

    def paint(self, name: str, color: Color | None) -> None:
        """Give one body another color; None makes it vanish, with its shadow."""
        self.model.geom(name).rgba = (0, 0, 0, 0) if color is None else (*color, 1)

    def look(self, azimuth: float, elevation: float, distance: float) -> None:
        """Place the camera, in degrees, and in units of the scene."""
        self.camera.azimuth, self.camera.elevation, self.camera.distance = azimuth, elevation, distance

    def picture(self) -> np.ndarray:
        """What the camera sees, (64, 64, 3) bytes."""
        # Places of bodies and lights are all that a picture needs; a step of the physics would cost more and move them.
        self.library.mj_kinematics(self.model, self.state)
        self.library.mj_camlight(self.model, self.state)
        self.renderer.update_scene(self.state, self.camera)
        return self.renderer.render()


# 3DShapes -------------------------------------------------------------------------------------------------------

ROOM_XML = """
<mujoco>
  <visual>
    <headlight ambient=".46 .46 .46" diffuse=".42 .42 .42" specular="0 0 0"/>
    <quality shadowsize="1024" offsamples="4"/>
    <map znear="0.05" zfar="40" shadowclip="1.2"/>
    <global fovy="45" offwidth="64" offheight="64"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" builtin="flat" rgb1=".61 .886 .98" rgb2=".61 .886 .98" width="32" height="192"/>
    <texture name="plaster" type="2d" builtin="checker" rgb1="1 1 1" rgb2=".96 .96 .96" width="128" height="128"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1="1 1 1" rgb2=".97 .97 .97" width="128" height="128"/>
    <material name="wall" texture="plaster" texrepeat="10 3" specular="0" shininess="0" reflectance="0"/>
    <material name="floor" texture="tiles" texrepeat="14 14" specular="0" shininess="0" reflectance="0"/>
  </asset>
  <worldbody>
    <light type="directional" pos="-2 -3 6" dir=".45 .18 -1" diffuse=".44 .44 .44" ambient="0 0 0"
      specular=".2 .2 .2" castshadow="true"/>
    <geom type="plane" size="2.6 2.6 .1" material="floor"/>
    <geom type="box" pos="0 2.65 .77" size="2.7 .05 .77" material="wall"/>
    <geom type="box" pos="0 -2.65 .77" size="2.7 .05 .77" material="wall"/>
    <geom type="box" pos="2.65 0 .77" size=".05 2.7 .77" material="wall"/>
    <geom type="box" pos="-2.65 0 .77" size=".05 2.7 .77" material="wall"/>
    <body name="object" mocap="true">
      <geom name="cube" type="box" size=".3 .3 .3"/>
      <geom name="cylinder" type="cylinder" size=".3 .3"/>
      <geom name="ball" type="sphere" size=".3"/>
      <geom name="pill" type="capsule" size=".3 .3"/>
    </body>
  </worldbody>
</mujoco>"""

# The objects at scale 1: size as MuJoCo counts it (half-sides, or radius and half-length), and height of the middle
OBJECTS = {
    "cube": ((0.33, 0.33, 0.33), 0.33),
    "cylinder": ((0.3135, 0.3696, 0.0), 0.3696),
    "ball": ((0.3696, 0.0, 0.0), 0.3696),
    "pill": ((0.2805, 0.3465, 0.0), 0.627),  # MuJoCo leaves the round ends out of the length
}
SCALES = np.linspace(0.7, 1.3, 8)
ORIENTATIONS = np.linspace(-30, 30, 15)  # degrees


def room() -> Scene:
    """The room of 3DShapes."""
    return Scene(ROOM_XML, look_at=(0, 0, 0.766))


def photograph(scene: Scene, geometry: Sequence[int], floor: Color, wall: Color, thing: Color) -> np.ndarray:
    """The room with one object in it, (64, 64, 3); a geometry is a scale, a shape and an orientation."""
    scale, shape, orientation = geometry
    for name in OBJECTS:
        scene.paint(name, None)
    name = list(OBJECTS)[shape]
    size, height = OBJECTS[name]
    scene.model.geom(name).size = np.multiply(size, SCALES[scale])
    scene.state.mocap_pos[0] = (0, 0, height * SCALES[scale])
    scene.paint(name, thing)
    scene.paint_material("floor", floor)
    scene.paint_material("wall", wall)
    scene.look(90 + ORIENTATIONS[orientation], elevation=-5, distance=2.61)
    return scene.picture()


def surfaces(scene: Scene, geometry: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """How light floor, wall and object are, (3, 64, 64), and what no color of theirs changes, (64, 64, 3).

    A surface gives back its color times the light that falls on it. So one picture with that surface white and all
    others black, less the picture with all of them black (the sky and the highlights), is that light. Only where a
    highlight saturates, on 1 % of the pixels, is the light cut off.
    """
    sky = photograph(scene, geometry, BLACK, BLACK, BLACK).astype(np.int16)
    one_white = [[WHITE if i == j else BLACK for j in range(3)] for i in range(3)]
    lit = [photograph(scene, geometry, *colors) for colors in one_white]
    shade = np.stack([(image - sky)[..., 0].clip(0) for image in lit])  # gray: the three channels are equal
    return shade.astype(np.uint8), sky.astype(np.uint8)


def render_shapes3d_basis(notify: Notify = lambda text: None) -> tuple[np.ndarray, np.ndarray]:
    """The gray pictures, (8, 4, 15, 3, 64, 64), and the skies, (8, 4, 15, 64, 64, 3), that make every 3DShapes image.

    By scale, shape and orientation, in bytes: what `assets/shapes3d_basis.npz` holds as `shade` and `sky`.
    """
    geometries = list(product(range(8), range(4), range(15)))
    shade = np.zeros((8, 4, 15, 3, SIZE, SIZE), np.uint8)
    sky = np.zeros((8, 4, 15, SIZE, SIZE, 3), np.uint8)
    with room() as scene:
        for done, geometry in enumerate(geometries):
            if done % 20 == 0:
                notify(f"rendering: {done} of {len(geometries)} geometries")
            shade[geometry], sky[geometry] = surfaces(scene, geometry)
    return shade, sky


def render_shapes3d(combinations: np.ndarray) -> np.ndarray:
    """3DShapes images without the detour, to check the basis by: (n, 6) -> (n, 64, 64, 3) bytes."""
    images = np.zeros((len(combinations), SIZE, SIZE, 3), np.uint8)
    with room() as scene:
        for i, (floor, wall, thing, *geometry) in enumerate(combinations.tolist()):
            images[i] = photograph(scene, geometry, *(HUES[hue].tolist() for hue in (floor, wall, thing)))
    return images


# MPI3D ----------------------------------------------------------------------------------------------------------

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

# What the arm can hold: MuJoCo's kind of body, and its size when large; the last number is half its height.
HELD = {
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
BANDS = ((0.38, 0.33, 0.68), (0.25, 0.55, 0.45), (0.75, 0.42, 0.42))  # purple, sea green, salmon
CAMERAS = ((-50.0, 2.9), (-32.0, 2.9), (-12.0, 2.7))  # elevation and distance, from the top, the middle and the bottom
ENLARGED = (0.62, 1.0)  # small, large
ANGLES = np.deg2rad(np.linspace(-90, 90, 40))  # of both joints


def arm(enlarged: float) -> Scene:
    """The robot arm of MPI3D with all objects in its hand, small or large. A mesh cannot be scaled once compiled."""
    meshes, objects = [], []
    for name, (kind, size) in HELD.items():
        numbers = " ".join(f"{enlarged * s:.4f}" for s in size)
        if kind == "mesh":
            corners = " ".join(f"{x:.4f}" for corner in _corners(name) for x in corner)
            meshes.append(f'<mesh name="{name}" vertex="{corners}" scale="{numbers}"/>')
        form = f'mesh="{name}"' if kind == "mesh" else f'size="{numbers}"'
        middle = 0.41 + enlarged * size[-1]  # so that the arm, which ends at 0.445, reaches into it
        objects.append(f'<geom name="{name}" type="{kind}" {form} pos="0 0 {middle:.4f}"/>')
    lists = {"meshes": meshes, "objects": objects, "band": _band()}
    return Scene(ARM_XML.format(**{key: "\n".join(value) for key, value in lists.items()}), look_at=(0, 0, 0.55))


def _corners(name: str) -> list[tuple[float, float, float]]:
    """Of a solid that fills the cube from -1 to 1."""
    if name == "pyramid":
        return [*product((-1.0, 1.0), (-1.0, 1.0), (-1.0,)), (0, 0, 1)]
    if name == "cone":
        return [*_ring(24, -1), (0, 0, 1)]
    return [*_ring(6, -1), *_ring(6, 1)]


def _ring(number: int, height: float) -> list[tuple[float, float, float]]:
    turns = [2 * math.pi * k / number for k in range(number)]
    return [(math.cos(turn), math.sin(turn), height) for turn in turns]


def _band() -> list[str]:
    """The colored band around the floor, as many short boards."""
    return [
        f'<geom type="box" pos="{1.75 * x:.4f} {1.75 * y:.4f} .07" size=".012 .095 .07" '
        f'euler="0 0 {6 * k}" material="band"/>'
        for k, (x, y, _) in enumerate(_ring(60, 0))
    ]


def hold(scene: Scene, combination: Sequence[int]) -> np.ndarray:
    """The arm with one object, (64, 64, 3); a combination is as in MPI3D: color, shape, size, camera, ..."""
    color, shape, _, camera, background, horizontal, vertical = combination
    for i, name in enumerate(HELD):
        scene.paint(name, COLORS[color] if i == shape else None)
    scene.paint_material("band", BANDS[background])
    scene.state.qpos[:] = ANGLES[horizontal], ANGLES[vertical]
    elevation, distance = CAMERAS[camera]
    scene.look(90, elevation, distance)
    return scene.picture()


def render_mpi3d(combinations: np.ndarray, notify: Notify = lambda text: None) -> np.ndarray:
    """Images of the look-alike, (n, 7) -> (n, 64, 64, 3) bytes; slow, 20 to 40 a second on two cores."""
    images = np.zeros((len(combinations), SIZE, SIZE, 3), np.uint8)
    done = 0
    for size, enlarged in enumerate(ENLARGED):
        rows = np.flatnonzero(combinations[:, 2] == size)
        with arm(enlarged) as scene:
            for row in rows:
                if done % 50 == 0:
                    notify(f"rendering: {done:,} of {plural(len(combinations), 'image')}")
                images[row] = hold(scene, combinations[row].tolist())
                done += 1
    return images


@final
class MPI3DLike(KeptImages):
    """A look-alike of MPI3D (Gondal et al., 2019): a robot arm with an object, some combinations of its seven factors.

    Rendered with MuJoCo once and then kept in the cache folder. No two images have the same factors. Note that the
    horizontal angle is hardly seen where the arm stands upright (vertical 19 and 20). Pixels may differ by a little
    from one graphics library to another.
    """

    name = "mpi3d-like"
    paper = "after Gondal et al. (2019)"
    version = 1

    def title(self) -> str:
        return "mpi3d (look-alike)"

    def prepare(self) -> None:
        self.combinations()
        mujoco()

    def images(self, notify: Notify) -> tuple[np.ndarray, np.ndarray]:
        combinations = self.combinations()
        return render_mpi3d(combinations, notify), combinations

    def varied(self) -> tuple[Factor, ...]:
        return FACTORS

    def combinations(self) -> np.ndarray:
        """Factors drawn at random, each combination at most once, (points, 7)."""
        sizes = [factor.size or 0 for factor in FACTORS]
        most = math.prod(sizes)
        if not 1 <= self.points <= most:
            raise InputError(f"points={self.points}: expected from 1 to {most:,}, the number of combinations")
        rows = np.random.default_rng(self.seed).choice(most, self.points, replace=False)
        return np.stack(np.unravel_index(rows, sizes), 1)
