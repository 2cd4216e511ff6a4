"""The image loader: what people's files hold, and what must never reach a model."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from datamodules.sources.images import ImageLimits, inside, load_image
from smmd_lightning.types import BadSample


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def close(pixel: object, expected: tuple[int, int, int], tolerance: int = 6) -> bool:
    return bool(np.abs(np.subtract(pixel, expected)).max() <= tolerance)  # type: ignore[arg-type]


def png_header(width: int, height: int) -> bytes:
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 9) + b"IDATgarbage!!"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_comes_out_upright(orientation: int) -> None:
    upright = Image.new("RGB", (40, 24), "white")
    upright.paste("red", (0, 0, 20, 12))
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # transposition that stores the picture turned
    stored = upright if orientation == 1 else upright.transpose(Image.Transpose(undo[orientation]))
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = load_image(encoded(stored, "JPEG", exif=exif, quality=95, subsampling=0))
    assert image.size == (40, 24)
    assert close(image.getpixel((5, 5)), (254, 0, 0), 12)
    assert close(image.getpixel((35, 5)), (255, 255, 255), 12)
    assert close(image.getpixel((5, 20)), (255, 255, 255), 12)


def test_alpha_is_laid_on_white_even_where_black_hides_under_it() -> None:
    rgba = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    rgba.putpixel((1, 1), (255, 0, 0, 128))
    image = load_image(encoded(rgba))
    assert image.mode == "RGB"
    assert image.getpixel((0, 0)) == (255, 255, 255)
    assert close(image.getpixel((1, 1)), (255, 127, 127), 1)
    la = Image.new("LA", (4, 4), (0, 0))
    assert load_image(encoded(la)).getpixel((0, 0)) == (255, 255, 255)


def test_palette_and_single_colour_transparency() -> None:
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([10, 200, 30, 0, 0, 0])
    palette.putpixel((2, 2), 0)
    image = load_image(encoded(palette, transparency=1))
    assert image.getpixel((0, 0)) == (255, 255, 255)
    assert image.getpixel((2, 2)) == (10, 200, 30)
    keyed = Image.new("RGB", (4, 4), (0, 0, 0))
    keyed.putpixel((2, 2), (0, 0, 200))
    image = load_image(encoded(keyed, transparency=(0, 0, 0)))
    assert image.getpixel((0, 0)) == (255, 255, 255)
    assert image.getpixel((2, 2)) == (0, 0, 200)


def test_sixteen_bit_grey_is_scaled_not_clipped() -> None:
    ramp = np.array([[0, 257, 25700, 65535]] * 2, dtype=np.uint16)
    image = load_image(encoded(Image.fromarray(ramp)))
    assert [image.getpixel((x, 0))[0] for x in range(4)] == [0, 1, 100, 255]
    dark = load_image(encoded(Image.fromarray(ramp // 1000)))
    assert max(dark.getdata())[0] == 0, "a dark 16-bit picture stays dark"
    pgm = b"P5\n2 1\n65535\n" + struct.pack(">HH", 65535, 25700)
    image = load_image(pgm, limits=ImageLimits(min_side=1))
    assert [image.getpixel((x, 0))[0] for x in range(2)] == [255, 100]


@pytest.mark.parametrize(
    ("values", "grey"),
    [((0.0, 0.5, 1.0), (0, 128, 255)), ((0.0, 50.0, 200.0), (0, 50, 200)),
     ((0.0, 1.0, 2.0), (0, 1, 2)), ((0.0, 0.75, 1.5), (0, 128, 255)), ((-1.0, 0.5, 2.0), (0, 128, 255)),
     ((300.0, 300.0, 300.0), (255, 255, 255)), ((1.5, 1.5, 1.5), (2, 2, 2)), ((0.0, 12.5, 200.5), (0, 12, 200))],
)  # fmt: skip
def test_floating_point_grey(values: tuple[float, ...], grey: tuple[int, ...]) -> None:
    image = load_image(encoded(Image.fromarray(np.array([values, values], dtype=np.float32)), "TIFF"))
    assert tuple(image.getpixel((x, 0))[0] for x in range(3)) == grey
    broken = Image.fromarray(np.array([[np.nan, 0.0], [0.0, 1.0]], dtype=np.float32))
    with pytest.raises(BadSample, match="NaN"):
        load_image(broken)


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
@pytest.mark.parametrize(
    ("inks", "colour"),
    [((255, 0, 0, 0), (0, 255, 255)), ((0, 255, 255, 0), (255, 0, 0)), ((0, 0, 0, 0), (255, 255, 255)),
     ((0, 0, 0, 255), (0, 0, 0)), ((0, 0, 0, 128), (127, 127, 127))],
)  # fmt: skip
def test_cmyk_is_faithful(kind: str, inks: tuple[int, ...], colour: tuple[int, int, int]) -> None:
    image = load_image(encoded(Image.new("CMYK", (16, 16), inks), kind))
    assert image.mode == "RGB"
    assert close(image.getpixel((8, 8)), colour)


def test_a_broken_colour_profile_does_not_lose_the_picture() -> None:
    image = load_image(encoded(Image.new("CMYK", (16, 16), (255, 0, 0, 0)), "JPEG", icc_profile=b"nonsense"))
    assert close(image.getpixel((8, 8)), (0, 255, 255))


@pytest.mark.parametrize("mode", ["1", "L", "P", "YCbCr", "HSV", "RGBX", "La", "RGBa", "I", "F", "PA"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    image = Image.new(mode, (8, 8)) if mode[-1] != "a" else Image.new(mode[:-1] + "A", (8, 8)).convert(mode)
    assert load_image(image).mode == "RGB"


def test_first_frame_of_an_animation() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert load_image(data).getpixel((0, 0)) == (254, 0, 0) or load_image(data).getpixel((0, 0)) == (
        255,
        0,
        0,
    )


def test_huge_images_are_refused_from_the_header_alone(tmp_path: Path) -> None:
    path = tmp_path / "huge.png"
    path.write_bytes(png_header(20000, 10000))  # its pixel data are garbage: decoding would say something else
    with pytest.raises(BadSample, match=r"huge\.png.*(200,?000,?000|limit)"):
        load_image(path)
    path.write_bytes(png_header(9000, 8000))
    with pytest.raises(BadSample, match=r"9000x8000 is 72,000,000 pixels, above the limit of 64,000,000"):
        load_image(path)
    path.write_bytes(png_header(90, 80))
    with pytest.raises(BadSample, match=r"limit of 100 \(max_pixels"):
        load_image(path, limits=ImageLimits(max_pixels=100))


def test_extreme_ratios_and_tiny_sides_are_refused() -> None:
    with pytest.raises(BadSample, match="max_aspect_ratio"):
        load_image(encoded(Image.new("RGB", (1001, 10))))
    assert load_image(encoded(Image.new("RGB", (1000, 10)))).size == (1000, 10)
    with pytest.raises(BadSample, match="min_side"):
        load_image(Image.new("RGB", (27, 60)), limits=ImageLimits(min_side=28))


def test_bad_files_name_file_and_reason(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    whole = encoded(Image.fromarray(noise), "JPEG")
    cases = {
        "truncated.jpg": (whole[: len(whole) // 2], "decoded"),
        "empty.png": (b"", "empty"),
        "text.png": (b"this is no picture\n" * 20, "not an image"),
        "script.eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
    }
    for file, (data, reason) in cases.items():
        (tmp_path / file).write_bytes(data)
        with pytest.raises(BadSample, match=rf"{file}.*{reason}"):
            load_image(file, root=tmp_path)
    with pytest.raises(BadSample, match=r"missing\.png: no such file"):
        load_image("missing.png", root=tmp_path)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(BadSample, match="not a regular file"):
        load_image(tmp_path / "folder.png")
    with pytest.raises(BadSample, match=r"row 7: empty"):
        load_image({"bytes": b"", "path": None}, name="row 7")
    with pytest.raises(BadSample, match="neither"):
        load_image({"bytes": None, "path": None})
    with pytest.raises(BadSample, match="cannot be opened"):
        load_image("a" * 5000)
    with pytest.raises(TypeError, match="int"):
        load_image(5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_damage_is_a_bad_sample_and_never_another_error() -> None:
    rng = np.random.default_rng(1)
    pixels = Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8))
    for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"):
        whole = encoded(pixels, kind)
        for _ in range(60):
            data = bytearray(whole[: rng.integers(1, len(whole) + 1)])
            for place in rng.integers(0, len(data), 4):
                data[place] = rng.integers(0, 256)
            with contextlib.suppress(BadSample):
                assert load_image(bytes(data)).mode == "RGB"


def test_names_stay_in_the_data_folder(tmp_path: Path) -> None:
    folder, secret = tmp_path / "data", tmp_path / "secret.png"
    folder.mkdir()
    (folder / "sub").mkdir()
    secret.write_bytes(encoded(Image.new("RGB", (8, 8))))
    (folder / "good.png").write_bytes(secret.read_bytes())
    (folder / "link.png").symlink_to(secret)
    (folder / "fine.png").symlink_to(folder / "good.png")
    for name in ("../secret.png", "sub/../../secret.png", str(secret), "link.png", "", "a\0b", "C:\\a.png",
                 "\\\\host\\share\\x.png", "https://example.com/x.png", "file:///etc/passwd"):  # fmt: skip
        with pytest.raises(ValueError, match=r"data folder") as caught:
            load_image(name, root=folder)
        assert not isinstance(caught.value, BadSample), "an escape stops the run instead of being skipped"
    for name in ("good.png", "sub/../good.png", "fine.png"):
        assert load_image(name, root=folder).size == (8, 8)
    assert inside(folder, "sub/x.png") == (folder / "sub" / "x.png").resolve()


def test_sources_agree_and_global_state_stays(tmp_path: Path) -> None:
    before = (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)
    picture = Image.fromarray(np.random.default_rng(2).integers(0, 255, (20, 30, 3), dtype=np.uint8))
    data = encoded(picture)
    path = tmp_path / "p.png"
    path.write_bytes(data)
    sources = [
        path,
        str(path),
        data,
        picture,
        {"bytes": data, "path": "p.png"},
        {"bytes": None, "path": str(path)},
    ]
    for source in sources:
        assert load_image(source).tobytes() == picture.tobytes()
    assert load_image(picture) is picture
    assert before == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)
    path.unlink()  # no handle was left open, no lazy read pending


def test_nonsense_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="max_pixels must be at least 1, got 0"):
        ImageLimits(max_pixels=0)
