"""Whatever the metadata server answers, its reader says that there is no usable answer, and lives on."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import metadata
import pytest
import watch

OK = b"HTTP/1.1 200 OK\r\nETag: e\r\n"
Serve = Callable[[bytes], None]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Answers one request after the other with the same bytes, and closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(metadata, "SERVER", listener.getsockname())
    held = [b""]

    def answer() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(65536)
                client.sendall(held[0])

    thread = threading.Thread(target=answer)
    thread.start()
    yield lambda data: held.__setitem__(0, data)
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 301 Moved\r\nLocation: http://192.0.2.1/\r\n\r\n",
        OK + b'\r\n{"instance": {"attri',
        OK + b'Content-Length: 99\r\n\r\n{"instance": {}}',
        OK + b"Content-Length: many\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{",
        OK + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n{}\r\n0\r\n\r\n",
        OK + b"\r\n" + b"[" * 100_000,
        OK + b"\r\n\xff\xfe{}",
    ],
    ids=lambda answer: answer[:60].decode("latin-1"),
)
def test_no_usable_answer(serve: Serve, answer: bytes) -> None:
    """Kind 18: 503, half an answer, nonsense, a depth that no parser takes: one kind of error, for all callers."""
    serve(answer)
    with pytest.raises(metadata.UnavailableError):
        metadata.tree()


def test_a_server_that_does_not_wait_is_not_asked_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kind 18: what stands in for Google's server may answer `wait_for_change` at once."""
    answers: Iterator[tuple[str, dict[str, Any]]] = iter([("e", {}), ("e", {})])
    monkeypatch.setattr(metadata, "saved", lambda max_age: None)
    monkeypatch.setattr(metadata, "tree", lambda etag: next(answers))

    def asleep(seconds: float) -> None:
        raise TimeoutError(seconds)

    monkeypatch.setattr(time, "sleep", asleep)
    with pytest.raises(TimeoutError):
        watch.Metadata().run()


def test_usable_answers(serve: Serve) -> None:
    serve(OK + b"Content-Length: 15\r\n\r\n" + b'{"instance": 1}')
    assert metadata.tree() == ("e", {"instance": 1})
    serve(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2;x=y\r\n2]\r\n0\r\n\r\n")
    assert metadata.tree() == ("e", [1, 2])
