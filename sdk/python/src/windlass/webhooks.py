"""Verification of received webhooks by the Standard Webhooks scheme: HMAC-SHA256 over `id.timestamp.body`."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from windlass.errors import WebhookError

TOLERANCE = 300.0
"""How far a webhook's time may be from ours, in seconds."""


def verify(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> Any:
    """Checks a received webhook and returns its body as a value. Raises `WebhookError` if it is not genuine.

    `body` is the raw body, before any parsing. `secret` is `whsec_…`; give several while one is being replaced.
    """
    raw = body.encode() if isinstance(body, str) else body
    given = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp, signatures = (
            given[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
        )
    except KeyError as error:
        raise WebhookError(f"the header {error.args[0]} is missing") from None
    try:
        sent_at = int(timestamp)
    except ValueError:
        raise WebhookError("webhook-timestamp is not a number of seconds") from None
    if abs((time.time() if now is None else now) - sent_at) > tolerance:
        raise WebhookError(f"the timestamp is more than {tolerance:.0f} s from now")
    secrets = [secret] if isinstance(secret, str) else list(secret)
    expected = [sign(message_id, sent_at, raw, one).encode() for one in secrets]
    # Every pair is compared, so that the time taken says nothing about which came close.
    matches = [hmac.compare_digest(one.encode(), signature) for one in signatures.split(" ") for signature in expected]
    if not any(matches):
        raise WebhookError("no signature matches")
    try:
        return json.loads(raw)
    except ValueError as error:
        raise WebhookError("the signature is genuine, but the body is not JSON") from error


def sign(message_id: str, timestamp: int, body: bytes, secret: str) -> str:
    """The value of `webhook-signature`; useful in tests of a receiver."""
    digest = hmac.new(_key(secret), f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def _key(secret: str) -> bytes:
    # The text is not repeated in the error: it may be a real secret, mistyped.
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a webhook secret is `whsec_` followed by base64") from None
