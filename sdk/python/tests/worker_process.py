"""A worker in a process of its own, to be stopped and killed: worker_process.py URL QUEUE LEASE GRACE [PROCESSES]."""

import logging
import os
import sys
import time
from pathlib import Path

from windlass import Context, LeasedJob, Worker


def main(url: str, queue: str, lease: str, grace: str, processes: str = "1") -> None:
    worker = Worker(url, queues=[queue], concurrency=4, lease=float(lease), grace=float(grace))

    @worker.handler("until-file")
    def until_file(job: LeasedJob, ctx: Context) -> str:
        """Announces itself, then works until a file is there."""
        folder = Path(job.payload)
        (folder / f"started-{ctx.attempt}").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        return f"attempt {ctx.attempt}"

    @worker.handler("process")
    def process(job: LeasedJob, ctx: Context) -> int:
        """Says which process ran it; dies first if it is asked to."""
        if job.payload == "die" and ctx.attempt == 1:
            os.kill(os.getpid(), 9)
        time.sleep(0.05)
        return os.getpid()

    logging.basicConfig(level=logging.INFO)
    worker.run(processes=int(processes))


if __name__ == "__main__":
    main(*sys.argv[1:])
