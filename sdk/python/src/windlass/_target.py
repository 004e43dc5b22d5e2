"""Where the server is."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:9463"
# The names that the command line uses too.
URL_VARIABLE = "WINDLASS_SERVER"
TOKEN_VARIABLE = "WINDLASS_TOKEN"
USER_AGENT = "windlass-python/0.1.0"


@dataclass(frozen=True)
class Target:
    """A server's address, and the headers of every request to it."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    prefix: str
    headers: Mapping[str, str]

    @classmethod
    def find(cls, url: str | None, token: str | None, tls: ssl.SSLContext | None = None) -> "Target":
        """What was given, else what the environment names, else this machine."""
        url = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
        return cls.parse(url, token or os.environ.get(TOKEN_VARIABLE), tls)

    @classmethod
    def parse(cls, url: str, token: str | None, tls: ssl.SSLContext | None = None) -> "Target":
        """Reads `http://host:port` or `https://host/base/path`."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the server's URL must be http://… or https://…, not {url!r}")
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        headers = {"Host": parts.netloc.rpartition("@")[2], "User-Agent": USER_AGENT, "Accept": "application/json"}
        if token:
            if any(not " " < letter < "\x7f" for letter in token):
                raise ValueError("a token is printable ASCII without blanks")
            headers["Authorization"] = f"Bearer {token}"
        context = (tls or ssl.create_default_context()) if secure else None
        return cls(parts.hostname, port, context, parts.path.rstrip("/"), headers)

    def headers_of(self, body: bytes | None, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The headers of a request with this body."""
        headers = {**self.headers, **(more or {})}
        if body is not None:
            headers["Content-Type"] = "application/json"
            headers["Content-Length"] = str(len(body))
        return headers


def retry_after_seconds(value: str | None) -> float | None:
    """A Retry-After header in seconds. The server sends whole seconds; HTTP dates of proxies are ignored."""
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return None
