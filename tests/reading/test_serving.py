"""The page that reads pictures: what it answers, what it refuses, and what it looks like in a browser."""

import http.client
import io
import json
import re
import shutil
import subprocess
import threading
from base64 import b64decode, b64encode
from hashlib import sha256
from urllib.parse import quote, unquote

import pytest
from PIL import Image

from smmd_lightning import Reader
from smmd_lightning.commands.serve import main
from smmd_lightning.reading.pictures import open_picture
from smmd_lightning.reading.reader import Reading
from smmd_lightning.reading.serving import make_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


class FakeReader:
    """Says what it was asked; the size of a picture is its minute."""

    sees = True

    def __init__(self):
        self.asking = {"prompts": {"clock": "What time is it?", "number": f"How many? {HOSTILE}"}}
        self.seen = []

    def read(self, picture=None, question=None, task=None):
        self.seen.append((question, task))
        minute = open_picture(picture).width
        answers = [(f"03:{minute:02d}", 0.75), (f"03:{minute + 1:02d}", 0.25)]
        return Reading(answers[0][0], "", ("03:00", "03:09"), HOSTILE, answers, question, task or "clock")


@pytest.fixture
def server():
    made = make_server(FakeReader(), port=0, name=f"model {HOSTILE}")
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def png(width):
    kept = io.BytesIO()
    Image.new("RGB", (width, 8), "white").save(kept, "PNG")
    return kept.getvalue()


def ask(server, method="POST", path="/read?question=What%3F", body=b"", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    sent = {"Content-Type": "application/octet-stream"} | {
        name.replace("_", "-"): text for name, text in headers.items()
    }
    connection.request(method, path, body if method == "POST" else None, sent)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), dict(answer.getheaders())


def test_a_picture_comes_back_as_a_reading_with_its_hands(server):
    status, text, _ = ask(server, body=png(5), path="/read?question=" + quote("Wie spät?") + "&task=clock")
    found = json.loads(text)
    assert (status, found["value"], found["interval"]) == (200, "03:05", ["03:00", "03:09"])
    assert found["answers"] == [["03:05", 0.75], ["03:06", 0.25]]
    assert found["overlay"].count('class="ghost"') == 2
    assert server.reader.seen == [("Wie spät?", "clock")]


def test_the_page_is_the_only_page_and_holds_texts_as_texts(server):
    status, text, headers = ask(server, "GET", "/")
    assert status == 200
    assert HOSTILE not in text
    assert "onerror=&#34;" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    for path in ("/etc/passwd", "/../../x", "/page.css", "/read"):
        assert ask(server, "GET", path)[0] == 404


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"Host": "evil.example"}, "/read", 403),
        ({"Host": "127.0.0.1:1"}, "/read", 403),
        ({"Origin": "http://evil.example"}, "/read", 403),
        ({"Origin": "null"}, "/read", 403),
        ({"Content_Type": "text/plain"}, "/read", 415),
        ({"Content_Length": "99999999999"}, "/read", 413),
        ({"Content_Length": "-1"}, "/read", 413),
        ({}, "/other", 404),
    ],
)
def test_requests_of_others_are_refused(server, headers, path, status):
    assert ask(server, path=path, body=png(5), **headers)[0] == status
    assert server.reader.seen == []


def test_a_page_asked_for_by_another_name_is_refused(server):
    assert ask(server, "GET", "/", Host="evil.example")[0] == 403
    assert ask(server, "GET", "/", Host=f"localhost:{server.server_address[1]}")[0] == 200


def test_what_is_no_picture_is_an_error_and_the_server_goes_on(server):
    status, text, _ = ask(server, body=b"no picture")
    assert status == 400
    assert "cannot be read as a picture" in json.loads(text)["error"]
    assert ask(server, body=png(7))[0] == 200


def test_a_port_in_use_and_a_missing_model_are_named(server, capsys):
    with pytest.raises(ValueError, match=r"cannot be had .*--port"):
        make_server(FakeReader(), port=server.server_address[1])
    assert main(["--model", "./none"]) == 1
    assert "There is no model at none" in capsys.readouterr().err


def test_a_real_model_answers_over_the_page(checkpoint):
    reader = Reader(checkpoint("llava"))
    made = make_server(reader, port=0)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    status, text, _ = ask(made, path="/read", body=png(64))
    made.shutdown()
    made.server_close()
    assert status == 200
    assert json.loads(text)["text"] == reader.read(png(64)).text


# Drops a picture as a person would, waits for the answer, moves the hands, and writes down what is there.
PROBE = """
(async () => {
  const get = id => document.getElementById(id);
  const canvas = document.createElement("canvas");
  canvas.width = 42; canvas.height = 40;
  const blob = await new Promise(done => canvas.toBlob(done, "image/png"));
  const given = new DataTransfer();
  given.items.add(new File([blob], "photo.png"));
  get("drop").dispatchEvent(new DragEvent("drop", {dataTransfer: given, bubbles: true, cancelable: true}));
  for (let wait = 0; wait < 200 && get("shown").hidden; wait++) await new Promise(done => setTimeout(done, 20));
  await new Promise(done => setTimeout(done, 100));
  const before = get("overlay").offsetWidth;
  get("size").value = 50; get("size").dispatchEvent(new Event("input"));
  const say = {
    value: get("value").textContent, text: get("text").textContent, state: get("state").textContent,
    interval: get("interval").textContent, answers: [...get("answers").children].map(line => line.textContent),
    bars: [...document.querySelectorAll("#answers .bar")].map(bar => bar.style.width),
    ghosts: document.querySelectorAll("#overlay .ghost").length, before, after: get("overlay").offsetWidth,
    title: document.title, picture: get("picture").naturalWidth,
    wide: document.documentElement.scrollWidth <= innerWidth,
  };
  const out = document.createElement("pre"); out.id = "seen";
  out.textContent = btoa(encodeURIComponent(JSON.stringify(say))); document.body.append(out);
})();
"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1200, 500])
def test_a_dropped_picture_is_read_in_a_browser(server, tmp_path, width):
    digest = b64encode(sha256(PROBE.encode()).digest()).decode()
    server.policy = server.policy.replace("script-src ", f"script-src 'sha256-{digest}' ")
    server.page = server.page.replace("</body>", f"<script>{PROBE}</script></body>")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--enable-logging=stderr"]
    command += [f"--user-data-dir={tmp_path}", f"--window-size={width},900", "--virtual-time-budget=8000", server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="seen">([^<]*)</pre>', done.stdout)
    assert found, done.stderr[-2000:]
    seen = json.loads(unquote(b64decode(found[1]).decode()))
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert (seen["value"], seen["text"], seen["state"]) == ("03:42", HOSTILE, "")
    assert seen["interval"] == "90 % of the belief: 03:00 to 03:09"
    assert seen["answers"] == ["03:4275.0 %", "03:4325.0 %"]
    assert seen["bars"] == ["75%", "25%"]
    assert (seen["ghosts"], seen["picture"]) == (2, 42)
    assert seen["after"] == pytest.approx(seen["before"] / 2, abs=2)
    assert (seen["title"], seen["wide"]) == (f"model {HOSTILE} · reading", True)
    assert server.reader.seen == [("What time is it?", "clock")]
