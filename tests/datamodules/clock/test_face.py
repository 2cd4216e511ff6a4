"""Clock faces: the time is read back from the pixels."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from datamodules.clock.face import draw_face, hand_angles
from datamodules.clock.face_sampling import sample_face
from datamodules.clock.face_spec import (
    HAND_SHAPES,
    STYLES,
    Colour,
    FaceRanges,
    FaceSpec,
    HandSpec,
    NumeralSpec,
    TickSpec,
)
from datamodules.sources.glyphs import glyphs

RED, GREEN, BLUE, WHITE = (220, 0, 0), (0, 160, 0), (0, 0, 220), (255, 255, 255)


def face(**changes: object) -> FaceSpec:
    """A bare dial with hands in three colours, so that pixels say which hand they belong to."""
    spec = FaceSpec(
        shape="round",
        centre=(0.5, 0.5),
        radius=0.46,
        rotation=0.0,
        background=(WHITE, WHITE),
        dial=WHITE,
        rim=(0, 0, 0),
        rim_width=0.0,
        mark=False,
        ticks=TickSpec("none", "line", 0.1, 0.03, (0, 0, 0), False),
        numerals=NumeralSpec("none", "all", 0.2, 0.75, False, False, (0, 0, 0)),
        hour_hand=HandSpec("line", 0.5, 0.06, 0.0, RED),
        minute_hand=HandSpec("line", 0.85, 0.04, 0.0, GREEN),
        second_hand=None,
        cap=0.01,
        blur=0.0,
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


def angle_of(image: Image.Image, colour: Colour, centre: tuple[float, float] = (0.5, 0.5)) -> float:
    """Direction, in degrees clockwise from twelve, in which the pixels of one colour lie."""
    pixels = np.asarray(image).astype(int)
    rows, columns = np.nonzero(np.abs(pixels - colour).sum(-1) < 40)
    assert len(rows) > 10, "the hand cannot be seen"
    x = (columns + 0.5).mean() - centre[0] * image.width
    y = (rows + 0.5).mean() - centre[1] * image.height
    return math.degrees(math.atan2(x, -y)) % 360


def difference(a: float, b: float) -> float:
    return abs((a - b + 180) % 360 - 180)


@pytest.mark.parametrize(
    ("time", "angles"),
    [((12, 0, 0), (0, 0, 0)), ((3, 0, 0), (90, 0, 0)), ((9, 30, 0), (285, 180, 0)),
     ((15, 5, 30), (92.75, 33, 180)), ((0, 59, 59), (29.99167, 359.9, 354))],
)  # fmt: skip
def test_hands_move_continuously(time: tuple[int, int, int], angles: tuple[float, ...]) -> None:
    assert hand_angles(*time) == pytest.approx(angles, abs=1e-4)


@pytest.mark.parametrize("bad", [(24, 0, 0), (-1, 0, 0), (3, 60, 0), (3, 0, 60)])
def test_impossible_times_are_refused(bad: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be from 0 to"):
        draw_face(face(), *bad)


def lone_hand_angle(image: Image.Image) -> float:
    """Direction of the centre of gravity of whatever is not white, weighted by darkness."""
    ink = 255.0 - np.asarray(image)[..., 0]
    y, x = np.mgrid[: image.height, : image.width] + 0.5 - image.width / 2
    return math.degrees(math.atan2((ink * x).sum(), -(ink * y).sum())) % 360


@pytest.mark.parametrize("shape", HAND_SHAPES)
@pytest.mark.parametrize(("size", "tolerance"), [(224, 0.3), (64, 1.0)])
def test_a_hand_points_at_the_time_without_bias(shape: str, size: int, tolerance: float) -> None:
    hidden = HandSpec("line", 0.01, 0.001, 0.0, WHITE)
    for minute in range(0, 60, 7):
        spec = face(hour_hand=hidden, minute_hand=HandSpec(shape, 0.85, 0.04, 0.0, GREEN), cap=0.0)
        assert difference(lone_hand_angle(draw_face(spec, 0, minute, size=size)), 6 * minute) < tolerance
        spec = face(minute_hand=hidden, hour_hand=HandSpec(shape, 0.5, 0.06, 0.0, GREEN), cap=0.0)
        expected = 30 * 5 + minute / 2
        assert difference(lone_hand_angle(draw_face(spec, 5, minute, size=size)), expected) < 2 * tolerance


def test_both_hands_are_there() -> None:
    for hour, minute in [(1, 20), (3, 50), (5, 5), (7, 12), (9, 33), (10, 59), (12, 31)]:
        image = draw_face(face(), hour, minute, size=224)
        hour_angle, minute_angle, _ = hand_angles(hour, minute)
        assert difference(angle_of(image, RED), hour_angle) < 1.5
        assert difference(angle_of(image, GREEN), minute_angle) < 0.7


def test_the_second_hand_points_at_the_second_and_moves_the_minute_hand() -> None:
    spec = face(second_hand=HandSpec("line", 0.9, 0.02, 0.0, BLUE))
    image = draw_face(spec, 4, 10, 45, size=224)
    assert difference(angle_of(image, BLUE), 270) < 0.7
    assert difference(angle_of(image, GREEN), 64.5) < 0.7


def test_rotation_and_position_turn_and_shift_everything() -> None:
    image = draw_face(face(rotation=40.0, centre=(0.45, 0.55), radius=0.4), 2, 30, size=224)
    assert difference(angle_of(image, GREEN, (0.45, 0.55)), 220) < 0.7
    assert difference(angle_of(image, RED, (0.45, 0.55)), 115) < 1.0
    numerals = NumeralSpec("arabic", "quarters", 0.2, 0.75, False, False, BLUE)
    ticks = TickSpec("quarters", "line", 0.1, 0.05, RED, False)
    upright = draw_face(face(numerals=numerals, ticks=ticks, mark=True), 2, 30, size=200)
    turned = draw_face(face(numerals=numerals, ticks=ticks, mark=True, rotation=90.0), 2, 30, size=200)
    by_hand = upright.rotate(-90)
    # Numeral masks land on whole pixels, so the two differ by an edge here and there, never by a shape.
    apart = np.abs(np.asarray(turned).astype(int) - np.asarray(by_hand).astype(int)).max(-1) > 128
    assert apart.mean() < 0.01
    assert np.abs(np.asarray(turned).astype(int) - np.asarray(upright).astype(int)).max(-1).mean() > 10


def test_one_minute_and_one_second_change_the_picture() -> None:
    for style, seed in itertools.product(STYLES, range(5)):
        spec = sample_face(np.random.default_rng(seed), style)
        assert draw_face(spec, 3, 5, size=64).tobytes() != draw_face(spec, 3, 6, size=64).tobytes()
    spec = face(second_hand=HandSpec("line", 0.9, 0.02, 0.0, BLUE))
    assert draw_face(spec, 3, 5, 10).tobytes() != draw_face(spec, 3, 5, 11).tobytes()
    assert draw_face(spec, 3, 5).tobytes() == draw_face(spec, 15, 5, 0).tobytes()


def test_a_picture_is_a_function_of_its_arguments() -> None:
    for seed in range(8):
        spec = sample_face(np.random.default_rng(seed))
        assert spec == sample_face(np.random.default_rng(seed))
        first = draw_face(spec, 7, 41, 20, size=96)
        glyphs.cache_clear()
        assert draw_face(spec, 7, 41, 20, size=96).tobytes() == first.tobytes()
        assert (first.mode, first.size) == ("RGB", (96, 96))


@pytest.mark.parametrize("size", [16, 64, 97, 336])
def test_any_size_is_obeyed(size: int) -> None:
    for seed in range(6):
        assert draw_face(sample_face(np.random.default_rng(seed)), 10, 10, 10, size=size).size == (size, size)


def test_too_small_a_size_and_an_unknown_style_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 16 pixels, got 8"):
        draw_face(face(), 1, 1, size=8)
    with pytest.raises(ValueError, match=r"\['plain', 'varied'\], got 'fancy'"):
        sample_face(np.random.default_rng(0), "fancy")


def contrast(a: Colour, b: Colour) -> float:
    """WCAG contrast ratio."""

    def luminance(colour: Colour) -> float:
        parts = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_varied_face_is_legible() -> None:
    seen: dict[str, set[object]] = {
        "shape": set(),
        "system": set(),
        "ticks": set(),
        "hand": set(),
        "second": set(),
    }
    for seed in range(600):
        spec = sample_face(np.random.default_rng(seed))
        hour, minute = spec.hour_hand, spec.minute_hand
        assert hour.length <= 0.67 * minute.length
        assert hour.width > minute.width
        assert contrast(hour.colour, spec.dial) > 4
        assert contrast(minute.colour, spec.dial) > 4
        assert spec.second_hand is None or contrast(spec.second_hand.colour, spec.dial) > 2.5
        turn = math.radians(spec.rotation)
        reach = abs(math.cos(turn)) + abs(math.sin(turn)) if spec.shape == "square" else 1.0
        extent = spec.radius * reach * (1 + spec.rim_width)
        assert all(extent <= place <= 1 - extent for place in spec.centre), "the whole dial is in the image"
        shows_direction = spec.numerals.system != "none" or spec.mark
        assert abs(spec.rotation) <= (20 if shows_direction else 10)
        if spec.numerals.system == "none" and spec.ticks.which == "none":
            assert spec.rotation == 0
        for key, value in zip(
            seen,
            (spec.shape, spec.numerals.system, spec.ticks.which, hour.shape, spec.second_hand is None),
            strict=True,
        ):
            seen[key].add(value)
    assert {key: len(values) for key, values in seen.items()} == {
        "shape": 2, "system": 3, "ticks": 4, "hand": 6, "second": 2,
    }  # fmt: skip


def test_ranges_are_obeyed() -> None:
    ranges = FaceRanges(
        radius=(0.2, 0.25), shift=0.2, rotation=(-180.0, 180.0), blur=(0.001, 0.002), blur_share=1.0,
        shapes=("square",), dark_share=1.0, numerals=("roman",), ticks=("hours",), hands=("arrow",),
        second_hand=1.0,
    )  # fmt: skip
    rotations = []
    for seed in range(60):
        spec = sample_face(np.random.default_rng(seed), ranges=ranges)
        assert 0.2 <= spec.radius <= 0.25
        assert max(abs(place - 0.5) for place in spec.centre) <= 0.2
        assert 0.001 <= spec.blur <= 0.002
        assert (spec.shape, spec.numerals.system, spec.ticks.which) == ("square", "roman", "hours")
        assert max(spec.dial) < 60
        assert spec.second_hand is not None
        assert spec.minute_hand.shape == "arrow"
        rotations.append(spec.rotation)
    assert max(rotations) > 120
    assert min(rotations) < -120
    never = FaceRanges(second_hand=0.0, dark_share=0.0)
    assert all(sample_face(np.random.default_rng(s), ranges=never).second_hand is None for s in range(40))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("radius", (0.4, 0.3)), ("radius", (0.2, 0.7)), ("shapes", ("oval",)), ("shapes", ()),
     ("second_hand", 1.5), ("shift", -0.1), ("hands", ("sword",))],
)  # fmt: skip
def test_nonsense_ranges_name_the_setting(setting: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"FaceRanges.{setting}"):
        FaceRanges(**{setting: value})  # type: ignore[arg-type]
