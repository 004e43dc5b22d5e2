// Writes pictures of the pages to docs/images: light, dark and on a phone. Started by `scripts/test-dashboard screenshots`.
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { client, deadLetters, startBrowser, startServer } from "./harness.mjs";

const HOME = process.env.WINDLASS_IMAGES || fileURLToPath(new URL("../../../../docs/images", import.meta.url));
const LOOKS = {
  light: { colorScheme: "light", viewport: { width: 1000, height: 640 } },
  dark: { colorScheme: "dark", viewport: { width: 1000, height: 640 } },
  phone: { colorScheme: "light", viewport: { width: 360, height: 640 } },
};

mkdirSync(HOME, { recursive: true });
const server = await startServer("sqlite");
const api = client(server.address);
await fill();
const [letter] = (await api.call("GET", "/dead-letters?queue=orders&limit=1")).items;
const [retrying] = (await api.call("GET", "/jobs?state=retrying&queue=payments&limit=1")).items;
const [schedule] = (await api.call("GET", "/schedules?limit=1")).items;
const PAGES = {
  overview: "/?span=5m",
  queues: "/queues",
  queue: "/queues/default/payments",
  jobs: "/jobs",
  job: `/jobs/${retrying.id}`,
  failed: `/jobs/${letter.id}`,
  "dead-letters": "/dead-letters",
  schedules: "/schedules",
  schedule: `/schedules/${schedule.id}`,
  policies: "/policies?line=full-jitter&outage=2m&jobs=2000",
  workers: "/workers",
  alerts: "/alerts",
  audit: "/audit",
};
// Dark and phone: the pages that differ most. All pages in all looks would make the repository heavy; `all` writes them.
const MAIN = ["overview", "jobs", "job", "dead-letters", "queues"];
const all = process.argv.includes("all");
for (const [look, options] of Object.entries(LOOKS)) {
  const browser = await startBrowser(server.address, options);
  for (const [name, path] of Object.entries(PAGES)) {
    if (!all && look !== "light" && !MAIN.includes(name)) continue;
    await browser.page.goto(path);
    await browser.page.waitForLoadState("load");
    await browser.page.screenshot({ path: `${HOME}/${name}-${look}.png`, scale: "css" });
  }
  if (browser.faults.length) console.error(look, browser.faults);
  await browser.stop();
}
await server.stop();

/** Jobs in every state, five causes of failure, a schedule, a paused queue. */
async function fill() {
  const many = (count, job) => Array.from({ length: count }, (_, n) => job(n));
  await deadLetters(api, 240);
  await api.enqueue(many(600, (n) => ({ kind: "email", queue: "email", payload: { to: `user-${n}@example.org`, template: "welcome" } })));
  let done = 0;
  await api.work("email", () => (done++ % 11 === 0 ? { class: "SmtpError", message: "451 try again later" } : { complete: true }));
  await api.enqueue(many(60, (n) => ({ kind: "charge", queue: "payments", payload: { order: 1000 + n, amount: "19.90", card: { token: "tok_1" } },
    retry: "exponential:base=200ms,factor=2,cap=1h,jitter=full,retries=8" })));
  for (let round = 0; round < 4; round++) {
    await api.work("payments", () => ({ class: "Timeout", message: "the payment service did not answer within 30s" }));
    await new Promise((resolve) => setTimeout(resolve, 900));
  }
  await api.enqueue(many(40, (n) => ({ kind: "report", queue: "reports", payload: { month: n }, delay: "2h" })));
  await api.enqueue(many(25, () => ({ kind: "sync", queue: "sync", payload: {} })));
  await api.call("POST", "/queues/sync/pause");
  const schedules = [["*/5 * * * *", "Europe/Berlin", "cleanup"], ["0 9 * * MON-FRI", "America/New_York", "digest"]];
  for (const [cron, timezone, kind] of schedules) {
    const made = await api.call("POST", "/schedules", { cron, timezone, job: { kind, queue: "nightly" } });
    for (let n = 0; n < 6; n++) {
      await api.call("POST", `/schedules/${made.id}/trigger`);
      await api.work("nightly", () => (n === 3 ? { class: "Broken", message: "no such table", permanent: true } : { complete: true }));
    }
  }
}
