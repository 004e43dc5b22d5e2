"""What is measured, and whether it grows."""
import pathlib
import re
import statistics
import subprocess

from nodes import POSTGRES
from places import Place

MIB = 1 << 20
# Growth between the second quarter of the run and its last that counts as noise: a share, and an amount.
SHARE, NOISE = 1.15, {"memory": 12 * MIB, "files": 12, "threads": 6, "disk": 24 * MIB}
SIZE = "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '{}' AND c.relkind IN ('r', 'p', 'm')"


def sample(place: Place) -> dict[str, int]:
    process = pathlib.Path(f"/proc/{place.steady.process.pid}")
    status = (process / "status").read_text()
    return {
        "memory": int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024,
        "files": len(list((process / "fd").iterdir())),
        "threads": int(re.search(r"Threads:\s+(\d+)", status)[1]),
        "disk": disk(place),
    }


def disk(place: Place) -> int:
    if place.kind == "sqlite":
        return sum(path.stat().st_size for path in place.steady.home.glob("jobs.db*"))
    asked = ["psql", POSTGRES, "-Atqc", SIZE.format(place.steady.schema)]
    return int(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip() or 0)


class Samples:
    def __init__(self, path: pathlib.Path) -> None:
        self.rows: list[tuple[float, str, dict[str, int]]] = []
        self.file = path.open("w")
        self.file.write("seconds,store,memory,files,threads,disk\n")

    def add(self, seconds: float, store: str, values: dict[str, int]) -> None:
        self.rows.append((seconds, store, values))
        self.file.write(f"{seconds:.0f},{store},{','.join(str(value) for value in values.values())}\n")
        self.file.flush()

    def series(self, store: str, measure: str) -> list[tuple[float, int]]:
        return [(seconds, values[measure]) for seconds, name, values in self.rows if name == store]

    def stores(self) -> list[str]:
        return list(dict.fromkeys(store for _, store, _ in self.rows))

    def quarters(self, store: str, measure: str) -> tuple[float, float]:
        """The medians of the second quarter of the run and of the last."""
        values = [value for _, value in self.series(store, measure)]
        quarter = max(1, len(values) // 4)
        return statistics.median(values[quarter:2 * quarter]), statistics.median(values[-quarter:])

    def summary(self) -> str:
        lines = []
        for store in self.stores():
            for measure in NOISE:
                before, after = self.quarters(store, measure)
                unit, name = (MIB, " MiB") if measure in ("memory", "disk") else (1, "")
                lines.append(f"{store}, {measure}: {before / unit:.1f}{name} in the second quarter, {after / unit:.1f}{name} in the last")
        return "\n".join(lines)


def growth(samples: Samples) -> list[str]:
    found = []
    for store in samples.stores():
        for measure, noise in NOISE.items():
            before, after = samples.quarters(store, measure)
            if after > max(before * SHARE, before + noise):
                found.append(f"{store}: {measure} grew from {before:.0f} to {after:.0f}")
    return found
