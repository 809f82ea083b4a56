"""The room of 3DShapes in MuJoCo: the source of the basis images that `Shapes3D` ships."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from unweave.datasets.cached_images import Notify
from unweave.datasets.mujoco_scene import SIZE, Color, Scene
from unweave.datasets.shapes3d import HUES

BLACK, WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)

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

# The objects at scale 1: size as MuJoCo defines it (half-sides, or radius and half-length), and height of the center
OBJECTS = {
    "cube": ((0.33, 0.33, 0.33), 0.33),
    "cylinder": ((0.3135, 0.3696, 0.0), 0.3696),
    "ball": ((0.3696, 0.0, 0.0), 0.3696),
    "pill": ((0.2805, 0.3465, 0.0), 0.627),  # the length of a capsule excludes its round ends
}
SCALES = np.linspace(0.7, 1.3, 8)
ORIENTATIONS = np.linspace(-30, 30, 15)  # degrees


def make_room() -> Scene:
    """Return the room of 3DShapes with all objects in it."""
    return Scene(ROOM_XML, look_at=(0, 0, 0.766))


def render_room(scene: Scene, geometry: Sequence[int], floor: Color, wall: Color, object_color: Color) -> np.ndarray:
    """Render the room with one object, (64, 64, 3) bytes; `geometry` is a scale, a shape and an orientation."""
    scale, shape, orientation = geometry
    for name in OBJECTS:
        scene.paint(name, None)
    name = list(OBJECTS)[shape]
    size, height = OBJECTS[name]
    scene.model.geom(name).size = np.multiply(size, SCALES[scale])
    scene.state.mocap_pos[0] = (0, 0, height * SCALES[scale])
    scene.paint(name, object_color)
    scene.paint_material("floor", floor)
    scene.paint_material("wall", wall)
    scene.place_camera(90 + ORIENTATIONS[orientation], elevation=-5, distance=2.61)
    return scene.render()


def render_surfaces(scene: Scene, geometry: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the light on floor, wall and object, (3, 64, 64), and what their colors do not change, (64, 64, 3).

    A surface reflects its color times the light that falls on it. The light is therefore an image with that surface
    white and all others black, minus an image with all of them black (the sky and the highlights). It is clipped
    where a highlight saturates, which concerns 1 % of the pixels.
    """
    sky = render_room(scene, geometry, BLACK, BLACK, BLACK).astype(np.int16)
    one_white = [[WHITE if i == j else BLACK for j in range(3)] for i in range(3)]
    lit = [render_room(scene, geometry, *colors) for colors in one_white]
    shade = np.stack([(image - sky)[..., 0].clip(0) for image in lit])  # gray: the three channels are equal
    return shade.astype(np.uint8), sky.astype(np.uint8)


def render_shapes3d_basis(notify: Notify = lambda text: None) -> tuple[np.ndarray, np.ndarray]:
    """Render the basis of every 3DShapes image: light, (8, 4, 15, 3, 64, 64), and sky, (8, 4, 15, 64, 64, 3).

    Bytes by scale, shape and orientation. `assets/shapes3d_basis.npz` holds them as `shade` and `sky`.
    """
    geometries = list(product(range(8), range(4), range(15)))
    shade = np.zeros((8, 4, 15, 3, SIZE, SIZE), np.uint8)
    sky = np.zeros((8, 4, 15, SIZE, SIZE, 3), np.uint8)
    with make_room() as scene:
        for done, geometry in enumerate(geometries):
            if done % 20 == 0:
                notify(f"rendering: {done} of {len(geometries)} geometries")
            shade[geometry], sky[geometry] = render_surfaces(scene, geometry)
    return shade, sky


def render_shapes3d(combinations: np.ndarray) -> np.ndarray:
    """Render 3DShapes images directly, to check the basis: (n, 6) -> (n, 64, 64, 3) bytes."""
    images = np.zeros((len(combinations), SIZE, SIZE, 3), np.uint8)
    with make_room() as scene:
        for i, (floor, wall, object_color, *geometry) in enumerate(combinations.tolist()):
            images[i] = render_room(scene, geometry, *(HUES[hue].tolist() for hue in (floor, wall, object_color)))
    return images
