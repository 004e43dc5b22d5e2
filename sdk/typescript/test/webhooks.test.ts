/** Verification of webhooks by the Standard Webhooks scheme. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { signWebhook, verifyWebhook } from "../src/index.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
// The example of the scheme's own documentation.
const ID = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIME = 1614265330;
const BODY = '{"test": 2432232314}';
const SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

function headers(signature = SIGNATURE, time = String(TIME)): Record<string, string> {
  return { "Webhook-Id": ID, "webhook-timestamp": time, "webhook-signature": signature };
}

test("the published example", async () => {
  assert.equal(await signWebhook(ID, TIME, BODY, SECRET), SIGNATURE);
  const value = { test: 2432232314 };
  assert.deepEqual(await verifyWebhook(BODY, headers(), SECRET, { now: TIME }), value);
  const bytes = new TextEncoder().encode(BODY);
  assert.deepEqual(await verifyWebhook(bytes, new Headers(headers()), SECRET, { now: TIME }), value);
});

test("several signatures and secrets", async () => {
  await verifyWebhook(BODY, headers(`v1,bm9uZQ== v2,x ${SIGNATURE}`), SECRET, { now: TIME });
  await verifyWebhook(BODY, headers(), [OTHER, SECRET], { now: TIME });
});

test("what is not genuine is refused", async () => {
  const cases: [Record<string, string>, string, number, RegExp][] = [
    [headers(), OTHER, TIME, /no signature/],
    [headers("v1,é"), SECRET, TIME, /no signature/],
    [headers(), SECRET, TIME + 301, /more than 300 s/],
    [headers(), SECRET, TIME - 301, /more than 300 s/],
    [headers(SIGNATURE, "soon"), SECRET, TIME, /not a number/],
    [{ "webhook-id": ID }, SECRET, TIME, /webhook-timestamp is missing/],
  ];
  for (const [given, secret, now, message] of cases) {
    await assert.rejects(verifyWebhook(BODY, given, secret, { now }), { name: "WebhookError", message });
  }
});

test("a wrong secret is not repeated", async () => {
  await assert.rejects(verifyWebhook(BODY, headers(), "whsec_*mistyped*", { now: TIME }), (error: Error) => {
    return /whsec_/.test(error.message) && !/mistyped/.test(error.message);
  });
});
