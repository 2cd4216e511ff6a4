"""A small page on this machine: drop a picture, see what a trained model reads in it.

Unusual: the page is for this machine alone. The server listens on 127.0.0.1 unless told otherwise, answers only
requests that name it as their host (so that no foreign page reaches it by a name of its own), and only its own page may
ask.

One real example::

    server = make_server(Reader("best.ckpt"), port=8765)
    server.serve_forever()                                       # http://127.0.0.1:8765/
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from markupsafe import Markup

from smmd_lightning.metrics import metrics_for
from smmd_lightning.metrics.registry import load
from smmd_lightning.reading.reader import Reading
from smmd_lightning.report.templates import render

MOST_BYTES = 32_000_000
"""Largest picture that is taken."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Answers(Protocol):
    """What the server asks: a `Reader`."""

    asking: dict[str, Any]

    @property
    def sees(self) -> bool:
        """Whether pictures are taken."""
        ...

    def read(self, picture: bytes | None = None, question: str | None = None, task: str | None = None) -> Reading:
        """Answers one question."""
        ...


class PageServer(ThreadingHTTPServer):
    """The server of one reader.

    Args:
        address: Host and port to listen on; port 0 takes a free one.
        reader: What answers; one question at a time.
        name: The model's name, for the page.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], reader: Answers, name: str) -> None:
        self.reader, self.name = reader, name
        self.turn = threading.Lock()
        super().__init__(address, _Handler)
        self.page, self.policy = page(reader, name)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}/"

    def knows(self, host: str) -> bool:
        """Whether a request's Host names this server; where it listens for others, any name may."""
        own = str(self.server_address[0])
        if own not in LOOPBACK:
            return True
        return host in {f"{name}:{self.server_address[1]}" for name in LOOPBACK}


def make_server(reader: Answers, host: str = "127.0.0.1", port: int = 8765, name: str = "model") -> PageServer:
    """Returns a server that listens already.

    Raises:
        ValueError: The address cannot be had; names it.
    """
    try:
        return PageServer((host, port), reader, name)
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"{host}:{port} cannot be had ({error}). Choose another --port, or 0 for a free one."
        ) from error


def page(reader: Answers, name: str) -> tuple[str, str]:
    """Returns the page and its content security policy, which allows its own script and requests to this server."""
    own = files("smmd_lightning.reading")
    style = files("smmd_lightning.report").joinpath("page.css").read_text("utf-8")
    style += own.joinpath("serve.css").read_text("utf-8")
    script = own.joinpath("serve.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    prompts: dict[str, str] = reader.asking.get("prompts") or {}
    html = render(
        "serve.html",
        name=name,
        sees=reader.sees,
        question=next(iter(prompts.values()), ""),
        tasks=prompts,
        style=Markup(style),
        script=Markup(script),
    )
    policy = (
        "default-src 'none'; img-src blob: data:; connect-src 'self'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    return str(html), policy


def answer_of(reading: Reading) -> dict[str, Any]:
    """Returns a reading as plain data, with its drawing where the task has one."""
    overlay = metrics_for(reading.task).overlay_svg
    row: dict[str, Any] = {"parsed": reading.value, "truth": None, "meta": {}, "task": reading.task}
    return {**reading.plain(), "overlay": load(overlay)(row, "") if overlay and reading.value is not None else ""}


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = 60  # a sender that stops halfway does not hold a thread for ever

    def do_GET(self) -> None:
        """The page, and nothing else."""
        if not self.server.knows(self.headers.get("Host", "")):
            self._fail(HTTPStatus.FORBIDDEN, f"This server is {self.server.url}; the request names another host.")
        elif urlsplit(self.path).path != "/":
            self._fail(HTTPStatus.NOT_FOUND, "There is the page / and nothing else.")
        else:
            self._send(HTTPStatus.OK, self.server.page.encode(), "text/html; charset=utf-8")

    def do_POST(self) -> None:
        """One question."""
        self.close_connection = True  # a body that was not read must not be taken for the next request
        refused = self._refusal()
        if refused is not None:
            self._fail(*refused)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        given = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        try:
            with self.server.turn:
                reading = self.server.reader.read(body or None, given.get("question"), given.get("task"))
        except (ValueError, RuntimeError) as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))
            return
        self._send(HTTPStatus.OK, json.dumps(answer_of(reading)).encode(), "application/json")

    def _refusal(self) -> tuple[HTTPStatus, str] | None:
        """Why a question is not taken, before its body is read; None where it is."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        size = self.headers.get("Content-Length", "")
        if not self.server.knows(host) or origin not in (None, f"http://{host}"):
            return HTTPStatus.FORBIDDEN, "Only the page of this server may ask."
        if self.headers.get("Content-Type") != "application/octet-stream":  # which no foreign form can send
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the picture as application/octet-stream."
        if urlsplit(self.path).path != "/read":
            return HTTPStatus.NOT_FOUND, "Questions go to /read."
        if not (size.isascii() and size.isdigit()) or int(size) > MOST_BYTES:
            return (
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"A picture may have {MOST_BYTES:,} bytes, and must tell how many.",
            )
        return None

    def _fail(self, status: HTTPStatus, why: str) -> None:
        self._send(status, json.dumps({"error": why}).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", self.server.policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing: what people ask is their own business."""


def name_of(model: str | Path) -> str:
    """Names a model for its page: a run's folder for a checkpoint in it, else the last part.

    >>> [name_of(model) for model in ("runs/quickstart/checkpoints/best.ckpt", "models/exported", "Qwen/Qwen3-VL-4B")]
    ['quickstart', 'exported', 'Qwen3-VL-4B']
    """
    path = Path(model)
    return path.parent.parent.name if path.parent.name == "checkpoints" else path.name
