"""How long to wait before the server is called again."""

import random


class Backoff:
    """Exponential delays with jitter. Half of each delay is fixed, so that a loop never spins."""

    def __init__(self, base: float = 0.1, cap: float = 3.0) -> None:
        self._base = base
        self._cap = cap
        self._failures = 0

    def reset(self) -> None:
        """Start again from the base: the server answered."""
        self._failures = 0

    def next(self, at_least: float | None = None) -> float:
        """The next delay in seconds, raised to what the server asked for."""
        ceiling = min(self._cap, self._base * float(1 << min(self._failures, 16)))
        self._failures += 1
        delay = ceiling * random.uniform(0.5, 1.0)
        # Jitter on top: clients that were refused together must not come back together.
        return max(delay, at_least + random.uniform(0, self._base)) if at_least else delay
