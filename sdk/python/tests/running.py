"""Workers that run in the background of a test."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from conftest import DEADLINE, Server

from windlass import Worker

Make = Callable[..., Worker]


def make_worker(server: Server, queue: str, **options: object) -> Worker:
    """A worker with short times."""
    settings: dict[str, object] = {"concurrency": 4, "lease": 5.0, "poll": 5.0, "grace": 5.0}
    return Worker(server.url, queues=[queue], **(settings | options))  # type: ignore[arg-type]


@contextlib.contextmanager
def running(worker: Worker) -> Iterator[Worker]:
    """Runs the worker in a thread; drains it at the end."""
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(DEADLINE)
        assert not thread.is_alive(), "the worker did not stop"
