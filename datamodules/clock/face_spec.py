"""What a clock face looks like, and the ranges that faces are sampled from.

What is unusual: a `FaceSpec` says everything (no default is left to the drawing), so that a picture is a pure
function of specification, time and size. Lengths are in dial radii, places in image sides, angles in degrees
clockwise from twelve.

One real example::

    spec = sample_face(np.random.default_rng(0), "varied")
    spec.shape, spec.numerals.system, spec.hour_hand.shape      # ('square', 'roman', 'tapered')
"""

from __future__ import annotations

from dataclasses import dataclass

Colour = tuple[int, int, int]

HAND_SHAPES = ("line", "rounded", "tapered", "leaf", "lance", "arrow")


@dataclass(frozen=True)
class HandSpec:
    """One hand: outline, length and width and tail in dial radii, colour."""

    shape: str
    length: float
    width: float
    tail: float
    colour: Colour


@dataclass(frozen=True)
class TickSpec:
    """The marks at the border: `which` is none, quarters, hours or minutes; `shape` line, dot or wedge."""

    which: str
    shape: str
    length: float
    width: float
    colour: Colour
    track: bool


@dataclass(frozen=True)
class NumeralSpec:
    """The numbers: `system` is none, arabic or roman; `which` all or quarters; size and distance in radii."""

    system: str
    which: str
    size: float
    distance: float
    radial: bool
    bold: bool
    colour: Colour


@dataclass(frozen=True)
class FaceSpec:
    """Everything about a face but the time.

    Attributes:
        shape: `round` or `square`.
        centre: (x, y) in image sides.
        radius: Half the dial's extent, in image sides.
        rotation: Degrees clockwise by which the whole clock is turned.
        background: Colours of the wall, top and bottom.
        dial: Colour of the dial.
        rim: Colour of the rim.
        rim_width: In dial radii; 0 for none.
        mark: Whether a triangle marks twelve.
        ticks: Marks at the border.
        numerals: Numbers.
        hour_hand: The short one.
        minute_hand: The long one.
        second_hand: The thin one, or None.
        cap: Radius of the disc over the axle.
        blur: Radius of the box blur, in image sides.
    """

    shape: str
    centre: tuple[float, float]
    radius: float
    rotation: float
    background: tuple[Colour, Colour]
    dial: Colour
    rim: Colour
    rim_width: float
    mark: bool
    ticks: TickSpec
    numerals: NumeralSpec
    hour_hand: HandSpec
    minute_hand: HandSpec
    second_hand: HandSpec | None
    cap: float
    blur: float


@dataclass(frozen=True)
class FaceRanges:
    """What `sample_face` chooses among; pairs are ranges, other tuples are lists of equally likely choices.

    Attributes:
        radius: Dial radius in image sides.
        shift: Farthest the centre may lie from the image's, in image sides, per axis.
        rotation: Turn of the whole clock in degrees clockwise. A dial that shows no direction by numerals,
            twelve mark or ticks is never turned.
        blur: Radius of the blur in image sides (0.005 is about a pixel at 224).
        blur_share: Share of faces that are blurred at all.
        shapes: Dials.
        dark_share: Share of dark dials.
        coloured_share: Share of hands and dials in colour instead of black, white and grey.
        numerals: Number systems.
        ticks: Which ticks.
        hands: Outlines of hands.
        second_hand: Share of faces with a second hand; 0 never, 1 always.
    """

    radius: tuple[float, float] = (0.33, 0.47)
    shift: float = 0.08
    rotation: tuple[float, float] = (-20.0, 20.0)
    blur: tuple[float, float] = (0.002, 0.006)
    blur_share: float = 0.25
    shapes: tuple[str, ...] = ("round", "square")
    dark_share: float = 0.3
    coloured_share: float = 0.5
    numerals: tuple[str, ...] = ("none", "arabic", "roman")
    ticks: tuple[str, ...] = ("none", "quarters", "hours", "minutes")
    hands: tuple[str, ...] = HAND_SHAPES
    second_hand: float = 0.4

    def __post_init__(self) -> None:
        known = {
            "shapes": ("round", "square"),
            "numerals": ("none", "arabic", "roman"),
            "ticks": ("none", "quarters", "hours", "minutes"),
            "hands": HAND_SHAPES,
        }
        for name, choices in known.items():
            given = getattr(self, name)
            if not given or set(given) - set(choices):
                raise ValueError(f"FaceRanges.{name} must be some of {choices}, got {given!r}")
        limits = {"radius": (0.1, 0.5), "rotation": (-360.0, 360.0), "blur": (0.0, 0.05)}
        for name, (lowest, highest) in limits.items():
            low, high = getattr(self, name)
            if not lowest <= low <= high <= highest:
                raise ValueError(f"FaceRanges.{name} must be a rising pair in [{lowest}, {highest}], got {(low, high)}")
        for name in ("blur_share", "dark_share", "coloured_share", "second_hand"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"FaceRanges.{name} is a share from 0 to 1, got {getattr(self, name)}")
        if not 0 <= self.shift <= 0.4:
            raise ValueError(f"FaceRanges.shift must be from 0 to 0.4, got {self.shift}")


STYLES: dict[str, FaceRanges] = {
    "plain": FaceRanges(
        radius=(0.44, 0.47),
        shift=0.02,
        rotation=(0.0, 0.0),
        blur_share=0.0,
        shapes=("round",),
        dark_share=0.0,
        coloured_share=0.0,
        numerals=("none", "arabic"),
        ticks=("hours", "minutes"),
        hands=("line", "tapered"),
        second_hand=0.0,
    ),
    "varied": FaceRanges(),
}
"""The two named styles: a clean round dial, and everything."""
