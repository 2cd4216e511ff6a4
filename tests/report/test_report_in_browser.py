"""The page in headless Chromium: sorting and filtering by clicks, nothing on the console, no request, no overflow."""

import base64
import hashlib
import json
import re
import shutil
import socketserver
import subprocess
import threading

import pytest

from smmd_lightning.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--dump-dom"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
FLAGS += ["--enable-logging=stderr", "--virtual-time-budget=4000"]

# Runs after the page's own script, with its hash added to the policy. The page stands in a frame of the wanted width,
# since a headless window is at least 500 pixels wide; what was seen goes to the outer document.
PROBE = """
const say = {}, rows = () => [...document.querySelectorAll("#rows tbody tr.row")];
const column = name => [...document.querySelectorAll("#rows thead th")].findIndex(th => th.textContent === name);
const cells = name => rows().map(row => row.children[column(name)].textContent);
const click = name => document.querySelectorAll("#rows thead th button")[column(name)].click();
const get = id => document.getElementById(id);
const set = (id, value) => { get(id).value = value; get(id).dispatchEvent(new Event("input")); };
say.first = cells("id").slice(0, 3); say.shown = rows().length; say.count = get("count").textContent;
click("error"); say.worst = cells("error"); click("error"); say.best = cells("error");
click("truth"); say.truths = cells("truth");
say.sorted = document.querySelector("#rows th[aria-sort]").textContent;
set("which", "wrong"); say.wrong = cells("verdict");
set("which", "unread"); say.unread = cells("verdict"); set("which", "");
set("words", "test-7"); say.found = cells("id"); set("words", "");
set("kind", "roman"); say.roman = document.getElementById("count").textContent; set("kind", "");
document.getElementById("more").click(); say.more = rows().length;
click("id"); rows()[0].querySelector("button").click();
const open = document.querySelector("tr.open");
say.opened = open.querySelector("img")?.src.slice(0, 23) ?? ""; say.prompt = open.querySelector("dd").textContent;
say.expanded = rows()[0].querySelector("button").getAttribute("aria-expanded");
rows()[0].querySelector("button").click(); say.closed = document.querySelector("tr.open") === null;
const bar = document.querySelector("[data-rows]");
bar.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
say.bar = [bar.dataset.rows.split(",").length, rows().length, get("chosen").textContent, get("chosen").hidden];
say.barOpened = document.querySelectorAll("tr.open").length;
get("chosen").click(); say.unpicked = [get("chosen").hidden, get("count").textContent];
say.title = document.title; say.foreign = document.querySelectorAll("script").length;
say.width = innerWidth; say.scroll = document.documentElement.scrollWidth;
const entries = performance.getEntriesByType("resource").map(entry => entry.name);
say.requests = entries.filter(name => !name.startsWith("data:"));
parent.postMessage(btoa(encodeURIComponent(JSON.stringify(say))), "*");
"""

FRAME = """<!doctype html><script>onmessage = event => {
const out = document.createElement("pre"); out.id = "seen"; out.textContent = event.data; document.body.append(out); }
</script><body><iframe src="{page}" style="border:0;width:{width}px;height:900px"></iframe></body>"""


class Recorder(socketserver.BaseRequestHandler):
    def handle(self):
        self.server.lines.append(self.request.recv(4096).split(b"\r\n")[0].decode("latin1"))


def probe(page, folder, width):
    """Opens a page; returns what the probe saw, console lines, and requests that reached the proxy."""
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    text = page.read_text(encoding="utf-8").replace("script-src '", f"script-src 'sha256-{digest}' '", 1)
    copy = folder / f"probed{width}.html"
    copy.write_text(text.replace("</body>", f"<script>{PROBE}</script></body>"), encoding="utf-8")
    frame = folder / f"frame{width}.html"
    frame.write_text(FRAME.replace("{page}", copy.as_uri()).replace("{width}", str(width)), encoding="utf-8")
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Recorder) as proxy:
        proxy.lines = []
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / f'profile{width}'}", "--window-size=1400,900"]
        command += [f"--proxy-server=127.0.0.1:{proxy.server_address[1]}", frame.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        proxy.shutdown()
    seen = re.search(r'<pre id="seen">([^<]*)</pre>', done.stdout)
    assert seen, done.stderr[-2000:]
    from urllib.parse import unquote

    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unquote(base64.b64decode(seen[1]).decode())), console, proxy.lines


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_sorts_filters_opens_rows_and_stays_in_its_file(tmp_path, write_run, width):
    page = write_report(write_run(tmp_path / "run", count=120))
    answers = [json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").read_text("utf-8").splitlines()]
    seen, console, requests = probe(page, tmp_path, width)
    assert console == []
    assert seen["requests"] == []
    assert not [line for line in requests if "evil" in line]
    assert (seen["first"], seen["shown"], seen["count"]) == (["test-0", "test-1", "test-2"], 50, "120 of 120")

    unread = [row for row in answers if row["parsed"] is None]
    known = sorted((row["error"] for row in answers if row["parsed"] is not None), reverse=True)
    expected = [""] * len(unread) + [f"{error:.6g} min" for error in known]
    assert seen["worst"] == expected[:50]
    assert seen["best"] == expected[::-1][:50]
    assert seen["truths"] == sorted(row["truth"] for row in answers)[:50]
    assert seen["sorted"] == "truth"
    assert seen["wrong"]
    assert "right" not in seen["wrong"]
    assert seen["unread"] == ["nothing read"] * len(unread)
    assert sorted(seen["found"]) == sorted(row["id"] for row in answers if "test-7" in row["id"])
    roman = sum(row["meta"]["numerals"] == "roman" for row in answers)
    assert seen["roman"] == f"{roman} of 120"
    assert seen["more"] == 120
    assert seen["opened"] == "data:image/jpeg;base64,"
    assert (seen["prompt"], seen["expanded"], seen["closed"]) == (answers[0]["prompt"], "true", True)
    listed, shown, name, hidden = seen["bar"]
    assert shown == min(listed, 50)
    assert (name, hidden) == ("minutes off: up to 0 ✕", False)
    assert (seen["barOpened"], seen["unpicked"]) == (1, [True, "120 of 120"])
    assert seen["title"] == "run · report"  # the model's markup did not run
    assert seen["foreign"] == 3
    assert seen["width"] == width
    assert seen["scroll"] <= width


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_probe_would_see_errors_and_requests(tmp_path, write_run):
    page = write_report(write_run(tmp_path / "run", count=60, training=False))
    spoiled = page.read_text("utf-8").replace("default-src 'none'; img-src data:", "img-src data: http:")
    spoiled = spoiled.replace(
        "<main>", '<main><img src="http://evil.example/x.png"><div style="width:2000px">wide</div>'
    )
    spoiled = spoiled.replace("</main>", "<script>1</script></main>")  # the policy refuses it, aloud
    page.write_text(spoiled, "utf-8")
    seen, console, requests = probe(page, tmp_path, 400)
    assert seen["requests"]
    assert [line for line in requests if "evil.example" in line]
    assert [line for line in console if "Content Security Policy" in line]
    assert seen["scroll"] > seen["width"]
