"""A worker in a process of its own, to be stopped and killed: worker_process.py URL QUEUE LEASE GRACE."""

import logging
import sys
import time
from pathlib import Path

from windlass import Context, LeasedJob, Worker


def main(url: str, queue: str, lease: str, grace: str) -> None:
    worker = Worker(url, queues=[queue], concurrency=4, lease=float(lease), grace=float(grace))

    @worker.handler("until-file")
    def until_file(job: LeasedJob, ctx: Context) -> str:
        """Announces itself, then works until a file is there."""
        folder = Path(job.payload)
        (folder / f"started-{ctx.attempt}").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        return f"attempt {ctx.attempt}"

    logging.basicConfig(level=logging.INFO)
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
