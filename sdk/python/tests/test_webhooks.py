"""Verification of webhooks by the Standard Webhooks scheme."""

import pytest

from windlass import WebhookError, webhooks

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
# The example of the scheme's own documentation.
ID, TIME, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def headers(signature: str = SIGNATURE, time: str = str(TIME)) -> dict[str, str]:
    return {"Webhook-Id": ID, "webhook-timestamp": time, "webhook-signature": signature}


def test_the_published_example() -> None:
    assert webhooks.sign(ID, TIME, BODY, SECRET) == SIGNATURE
    assert webhooks.verify(BODY, headers(), SECRET, now=TIME) == {"test": 2432232314}


def test_several_signatures_and_secrets() -> None:
    assert webhooks.verify(BODY, headers(f"v1,bm9uZQ== v2,x {SIGNATURE}"), SECRET, now=TIME)
    assert webhooks.verify(BODY, headers(), [OTHER, SECRET], now=TIME)


@pytest.mark.parametrize(
    ("given", "secret", "now", "message"),
    [
        (headers(), OTHER, TIME, "no signature"),
        (headers("v1,é"), SECRET, TIME, "no signature"),
        (headers(), SECRET, TIME + 301, "more than 300 s"),
        (headers(), SECRET, TIME - 301, "more than 300 s"),
        (headers(time="soon"), SECRET, TIME, "not a number"),
        ({"webhook-id": ID}, SECRET, TIME, "webhook-timestamp is missing"),
    ],
)
def test_refused(given: dict[str, str], secret: str, now: float, message: str) -> None:
    with pytest.raises(WebhookError, match=message):
        webhooks.verify(BODY, given, secret, now=now)


def test_a_wrong_secret_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="whsec_") as caught:
        webhooks.verify(BODY, headers(), "whsec_*mistyped*", now=TIME)
    assert "mistyped" not in str(caught.value)
