"""The samples as an SVG: one small plot for each measure, a line for each store."""
from measure import MIB, NOISE, Samples

WIDTH, HEIGHT, LEFT, GAP = 640, 110, 70, 44
COLOURS = {"sqlite": "#0b6bcb", "postgres": "#c2410c"}
TITLES = {"memory": "resident memory, MiB", "files": "open files", "threads": "threads", "disk": "database, MiB"}


def plot(samples: Samples) -> str:
    last = max(seconds for seconds, _, _ in samples.rows) or 1
    total = GAP + len(NOISE) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {total}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, measure in enumerate(NOISE):
        unit = MIB if measure in ("memory", "disk") else 1
        top = GAP + number * (HEIGHT + GAP)
        lines = {store: samples.series(store, measure) for store in samples.stores()}
        most = max(value for line in lines.values() for _, value in line) / unit * 1.1 or 1
        parts.append(f'<text x="{LEFT}" y="{top - 8}" fill="#222">{TITLES[measure]}</text>')
        for share in (0, 0.5, 1):
            y = top + HEIGHT * (1 - share)
            parts.append(f'<path d="M{LEFT} {y:.0f}h{WIDTH}" stroke="#ddd"/><text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end" fill="#555">{most * share:.0f}</text>')
        for store, line in lines.items():
            points = " ".join(
                f"{LEFT + WIDTH * seconds / last:.1f},{top + HEIGHT * (1 - value / unit / most):.1f}" for seconds, value in line
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[store]}" stroke-width="1.5"/>')
    keys = "".join(
        f'<text x="{LEFT + 90 * n}" y="16" fill="{COLOURS[store]}">{store}</text>' for n, store in enumerate(samples.stores())
    )
    parts.append(f'{keys}<text x="{LEFT + WIDTH}" y="16" text-anchor="end" fill="#555">{last / 60:.0f} minutes</text></svg>')
    return "\n".join(parts) + "\n"
