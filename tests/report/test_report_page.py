import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from torch.utils.tensorboard import SummaryWriter

from smmd_lightning.commands.report import main
from smmd_lightning.report import read_run, write_report
from smmd_lightning.report.curves import thinned
from smmd_lightning.report.durations import duration
from smmd_lightning.report.picking import pick, picture
from smmd_lightning.report.svg import Axis, Plot, nice_ticks


class Elements(HTMLParser):
    """All start tags of a page with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture
def page(tmp_path, write_run):
    return write_report(write_run(tmp_path / "run", ["clock", "chart", "math"], count=60)).read_text("utf-8")


def test_nothing_in_the_page_points_out_of_it(page):
    for tag, attributes in Elements(page).found:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            assert attributes.get(name, "data:").startswith(("data:", "#")), (tag, attributes)
    assert "default-src 'none'" in page
    assert "url(" not in page
    assert "@import" not in page


def test_text_of_models_and_data_stays_text(page, hostile):
    tags = Elements(page).found
    assert [tag for tag, _ in tags].count("script") == 2
    assert not any(name.startswith("on") for _, attributes in tags for name in attributes)
    assert hostile not in page
    data = json.loads(re.search(r'id="answers">(.*?)</script>', page, re.S)[1])
    assert any(hostile in row["prompt"] for row in data)  # whole, once it is read as JSON


def test_every_drawing_is_well_formed(page):
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(drawings) > 20
    for drawing in drawings:
        ET.fromstring(drawing.replace("&#160;", " "))
        assert not re.search(r'[",-](nan|inf)\b', drawing)


def test_headline_shows_the_value_with_its_interval(tmp_path, write_run):
    run = write_run(tmp_path / "run", count=100, training=False)
    rows = read_run(run).answers
    share = sum(row["correct"] for row in rows) / len(rows)
    page = write_report(run).read_text("utf-8")
    tile = re.search(
        r'Exact match</div><div class="value">([\d.]+) %</div><div class="range">([\d.]+) % to ([\d.]+) %', page
    )
    value, low, high = map(float, tile.groups())
    assert value == pytest.approx(100 * share, abs=0.051)
    assert low < value < high


def test_an_evaluation_of_other_answers_is_told(tmp_path, write_run):
    run = write_run(tmp_path / "run", count=30, training=False)
    assert "metrics.json says" not in write_report(run).read_text("utf-8")
    (run / "metrics.json").write_text('{"test/exact_match": 0.99}')
    assert "metrics.json says test/exact_match = 0.99" in write_report(run).read_text("utf-8")


def test_ghost_hands_stand_where_the_answer_says(tmp_path, write_run):
    run = write_run(tmp_path / "run", count=3, training=False)
    row = {"id": "a", "task": "clock", "truth": "06:00", "raw": "3:00", "parsed": "03:00", "error": 180.0, "meta": {}}
    (run / "predictions.jsonl").write_text(json.dumps(row))
    page = write_report(run).read_text("utf-8")
    ghosts = re.findall(r'class="ghost"[^>]* x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', page)
    hour, minute = [[float(part) for part in ghost] for ghost in ghosts[:2]]
    assert hour[2] > hour[0]  # three o'clock: to the right
    assert hour[3] == pytest.approx(hour[1])
    assert minute[2] == pytest.approx(minute[0])  # straight up
    assert minute[3] < minute[1]


@pytest.mark.parametrize("missing", ["predictions.jsonl", "metrics.json", "config.yaml", "facts.json"])
def test_whatever_is_missing_leaves_a_page_of_the_rest(tmp_path, write_run, missing):
    run = write_run(tmp_path / "run", count=10)
    (run / missing).unlink()
    assert "<h1>run</h1>" in write_report(run).read_text("utf-8")


def test_rows_with_the_bare_keys_and_of_unknown_tasks_are_shown(tmp_path):
    rows = [
        {"id": 1, "raw": "x", "error": float("nan")},
        {"task": "weights", "truth": "5", "raw": "5", "correct": True},
    ]
    rows.append({"task": "clock", "truth": "03:05", "raw": "3:05", "parsed": "03:05", "error": 0.0, "correct": True})
    (tmp_path / "predictions.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    page = write_report(tmp_path).read_text("utf-8")
    assert "Weights: where it is wrong" in page  # judged as numbers
    assert len(json.loads(re.search(r'id="answers">(.*?)</script>', page, re.S)[1])) == 3


def test_a_folder_without_a_run_and_a_damaged_file_are_named(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"holds no run.*run_dir"):
        read_run(tmp_path)
    with pytest.raises(ValueError, match="is no folder"):
        read_run(tmp_path / "nowhere")
    (tmp_path / "predictions.jsonl").write_text('{"id": 1}\n{"id": \n')
    assert main([str(tmp_path)]) == 1
    assert re.search(r"predictions.jsonl, line 2: not JSON", capsys.readouterr().err)


def test_a_step_logged_again_after_a_crash_counts_once(tmp_path):
    for start, values in ((0, {10: 1.0, 20: 2.0}), (100, {20: 5.0, 30: 3.0})):
        with SummaryWriter(str(tmp_path), filename_suffix=f".{start}") as writer:
            for step, value in values.items():
                writer.add_scalar("train/ce", value, step, walltime=1000 + start + step)
    run = read_run(tmp_path)
    assert run.curves["train/ce"] == ((10, 1.0), (20, 5.0), (30, 3.0))
    assert run.seconds == 120


def test_a_log_cut_short_is_read_as_far_as_it_goes(tmp_path, write_run):
    run = write_run(tmp_path / "run", count=10)
    file = next(run.glob("events*"))
    file.write_bytes(file.read_bytes()[:4000])
    assert 5 < len(read_run(run).curves["train/ce"]) < 150


def test_pictures_come_from_the_run_alone(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for name in ("secret.png", "run/a.png", "run/a.svg", "run/big.png"):
        (tmp_path / name).write_bytes(b"\x89PNG" if "big" not in name else bytes(1_000_001))
    (run / "link.png").symlink_to(tmp_path / "secret.png")
    assert picture(run, {"image": "a.png"}) == "data:image/png;base64,iVBORw=="
    for name in (
        "../secret.png",
        str(tmp_path / "secret.png"),
        "link.png",
        "a.svg",
        "big.png",
        "none.png",
        "",
        None,
        5,
    ):
        assert picture(run, {"image": name}) == ""


def test_worst_best_and_random_are_different_samples():
    rows = [{"error": float(n), "correct": n == 0, "parsed": "x"} for n in range(20)] + [
        {"parsed": None, "correct": False}
    ]
    chosen = pick(rows, 3)
    assert chosen["worst"] == [20, 19, 18]
    assert chosen["best"] == [0]
    assert len({*chosen["worst"], *chosen["random"], *chosen["best"]}) == 7
    assert pick(rows, 3) == chosen
    assert pick([], 3) == {"worst": [], "random": [], "best": []}


def test_long_curves_are_thinned_to_means_and_keep_their_ends():
    points = thinned((*((step, float(step)) for step in range(1000)), (1000, float("nan"))), most=100)
    assert points[0] == (4.5, 4.5)
    assert points[-1] == (994.5, 994.5)
    assert len(points) == 100


def test_axes_place_values_and_keep_wild_ones_inside():
    axis = Axis.over([1, 1000], log=True)
    assert (axis.place(1), axis.place(1000)) == (0, 1)
    assert axis.place(10) == pytest.approx(1 / 3)
    assert axis.place(1e30) == 1
    assert Axis.over([float("inf"), 2.0, 2.0]).place(2.0) == pytest.approx(0.5)
    for low, high in ((0, 97), (-3, 4), (0.001, 0.0017), (1e5, 9e6)):
        ticks = nice_ticks(low, high)
        assert 3 <= len(ticks) <= 8
        assert low <= ticks[0] <= ticks[-1] <= high


def test_bars_and_points_stand_at_their_values():
    plot = Plot("t", Axis(0, 10, "x"), Axis(0, 100, "y"))
    plot.bar(0, 5, 50, "fifty")
    plot.dots([(10, 100)], ["corner <b>"])
    svg = plot.render()
    (left, bottom), (right, top) = plot.at(0, 0), plot.at(10, 100)
    assert f'height="{(bottom - top) / 2:.1f}"' in svg
    assert f'cx="{right:.1f}" cy="{top:.1f}"' in svg
    assert left < right
    assert "corner &lt;b&gt;" in svg


def test_the_command_writes_the_page_and_says_where(tmp_path, write_run, capsys):
    run = write_run(tmp_path / "run", count=10, training=False)
    assert main([str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    assert main([str(run), "--output", str(tmp_path / "x.html")]) == 0
    assert (tmp_path / "x.html").exists()
    with pytest.raises(SystemExit):
        main([str(run), str(run), "--output", "x.html"])


def test_the_command_does_not_wait_for_the_trainer_to_load(tmp_path, write_run):
    run = write_run(tmp_path / "run", count=10)
    code = f"import sys; from smmd_lightning.commands.report import main; main([{str(run)!r}]); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "lightning" not in loaded


def test_a_run_loads_what_draws_pages_only_when_it_writes_one():
    code = "import sys, smmd_lightning.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"smmd_lightning.report.page", "smmd_lightning.report.svg", "tensorboard.backend"} & set(loaded)


def test_durations_read_well():
    assert [duration(seconds) for seconds in (12.4, 61, 7260)] == ["12 s", "1 min 1 s", "2 h 1 min"]
