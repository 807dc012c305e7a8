"""A local server that plays a script of answers, and breaks them at an exact event.

`llmock` covers the ordinary faults. This one is for what it cannot say: arguments that are no object, two calls
whose fragments are cut apart, and a stream that ends after any chosen event, or in the middle of one.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.wire.strict import refusals
from tests.wire.wire_format import Answer, Api, FaultKind, Json, Refusal, body_of, events_of

__all__ = ["Exchange", "WireServer"]


@dataclass
class Exchange:
    """One request: its path, its body, and what it got."""

    path: str
    body: Json
    reply: Answer | Refusal

    @property
    def messages(self) -> list[Json]:
        """The messages of a chat completions request."""
        return list(self.body["messages"])

    @property
    def spoken(self) -> list[Json]:
        """The messages, or the input items of a responses request."""
        return list(self.body["messages"] if "messages" in self.body else self.body["input"])


@dataclass
class WireServer:
    """Answers requests from a script, in order, and refuses what a strict provider would refuse.

    A malformed request gets an HTTP 400 and is noted in `refused`; an unscripted one an HTTP 418.
    """

    script: list[Answer | Refusal] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        """What `ChatOpenAI(base_url=...)` takes."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def plays(self, *replies: Answer | Refusal) -> WireServer:
        """Start anew with this script."""
        self._released.set()
        self._released = threading.Event()
        with self._lock:
            self.script, self.exchanges, self.refused = list(replies), [], []
        return self

    def close(self) -> None:
        """Let stalled answers go and stop."""
        self._released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def take(self, path: str, body: Json) -> Answer | Refusal:
        """The next reply of the script, recorded with its request."""
        reasons = refusals(body)
        with self._lock:
            self.refused += reasons
            if reasons:
                reply: Answer | Refusal = Refusal(400, message="; ".join(reasons))
            else:
                reply = self.script.pop(0) if self.script else Refusal(418, message="the script is used up")
            if isinstance(reply, Answer):  # LangChain takes the provider's id as the message's
                reply = replace(reply, id=f"answer_{len(self.exchanges)}")
            self.exchanges.append(Exchange(path, body, reply))
            return reply

    def stall(self) -> None:
        """Wait until the test is over."""
        self._released.wait(30)


class _Http(ThreadingHTTPServer):
    """The listening socket, and whose script it plays."""

    daemon_threads = True

    def __init__(self, wire: WireServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wire = wire


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def handle(self) -> None:
        """Serve; a client that gave up on a stalled answer leaves a closed socket behind."""
        with suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api: Api = "responses" if "responses" in self.path else "chat"
        reply = self.server.wire.take(self.path, body)
        if isinstance(reply, Refusal):
            error = {"message": reply.message, "type": "error", "param": None, "code": None}
            self._json(reply.status, {"error": error}, reply.retry_after)
        elif body.get("stream"):
            usage = bool(body.get("stream_options", {}).get("include_usage"))
            self._stream(reply, events_of(reply, api, usage=usage))
        elif reply.fault is None:
            self._json(200, body_of(reply, api))
        else:  # without a stream there is only silence, or a connection that closes before the answer
            if reply.fault == "stall":
                self.server.wire.stall()
            self.close_connection = True

    def _json(self, status: int, body: Json, retry_after: float | None = None) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(payload)

    def _stream(self, answer: Answer, events: list[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events):
            if answer.fault is None or number != answer.after:
                self._chunk(event)
            elif answer.fault == "corrupt":
                self._chunk(event[: len(event) // 2] + "\n\n")
            else:
                self._break(answer.fault, event)
                return
        self._end()

    def _break(self, fault: FaultKind, event: str) -> None:
        if fault == "stall":
            self.server.wire.stall()
        if fault == "half":
            self._chunk(event[: len(event) // 2])
        if fault in ("cut", "half"):
            self._end()  # the connection stays open: closing it would race with the client's next request
        else:
            self.close_connection = True

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
