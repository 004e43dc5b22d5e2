// A real server, a real browser, and jobs made through the API.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** The environment without settings of the test run, which the server would refuse. */
export function plainEnv(more = {}) {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("WINDLASS_"));
  return { ...Object.fromEntries(kept), ...more };
}

/** Starts `windlass serve` on a store of its own. */
export async function startServer(store, { args = [], env = {} } = {}) {
  const home = mkdtempSync(join(tmpdir(), "windlass-browser-"));
  const schema = `browser_${process.pid}_${Date.now()}`;
  const url = store === "postgres" ? process.env.WINDLASS_TEST_POSTGRES : `sqlite:${join(home, "jobs.db")}`;
  const child = spawn(process.env.WINDLASS_BIN, ["serve", "--listen", "127.0.0.1:0", "--store", url, "--quiet-jobs", ...args], {
    cwd: home,
    env: plainEnv({ WINDLASS_SCHEMA: schema, WINDLASS_LOGS_FORMAT: "text", ...env }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  const address = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      log += chunk;
      const found = log.match(/serves (http:\/\/127\.0\.0\.1:\d+)/);
      if (found) resolve(found[1]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${log}`)));
  });
  const stop = async () => {
    child.removeAllListeners("exit");
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    rmSync(home, { recursive: true, force: true });
  };
  return { address, stop, store: url, schema, home };
}

/** Calls of the API. */
export function client(address, token) {
  const call = async (method, path, body) => {
    const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const response = await fetch(address + "/api/v1" + path, { method, headers, body: body && JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  const enqueue = async (jobs) => {
    for (let from = 0; from < jobs.length; from += 2000) {
      await call("POST", "/jobs/batch", { jobs: jobs.slice(from, from + 2000) });
    }
  };
  /** Leases all due jobs of a queue and answers each with what `answer` says. */
  const work = async (queue, answer) => {
    for (;;) {
      const { jobs } = await call("POST", "/leases", { worker: "browser-test", queues: [queue], max: 500 });
      if (jobs.length === 0) return;
      const results = { fail: [], complete: [] };
      for (const job of jobs) {
        const { complete, ...fields } = answer(job);
        results[complete ? "complete" : "fail"].push({ id: job.id, attempt: job.attempt, lease: job.lease, ...fields });
      }
      for (const [path, list] of Object.entries(results)) {
        if (list.length) await call("POST", `/leases/${path}`, { worker: "browser-test", results: list });
      }
    }
  };
  return { call, enqueue, work };
}

/** A browser whose pages may not log errors or reach another host. */
export async function startBrowser(address, options = {}) {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  const context = await browser.newContext({ baseURL: address, viewport: { width: 1280, height: 900 }, ...options });
  const faults = [];
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  page.on("console", (message) => { if (message.type() === "error") faults.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => { faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== new URL(address).origin) faults.push(`request to ${url.origin}`);
  });
  const stop = () => browser.close();
  return { page, context, faults, stop, browser };
}

/** What axe-core finds serious or critical. */
export async function axe(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter((violation) => ["serious", "critical"].includes(violation.impact))
    .map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
}

/** Five causes of failure. */
export const CAUSES = [
  ["Timeout", "the payment service did not answer within 30s"],
  ["ValidationError", "order 17 has no address"],
  ["HttpError", "502 Bad Gateway from https://billing.example/charge"],
  ["Deadlock", "deadlock detected on relation invoices"],
  ["OutOfDisk", "cannot write report 4711: no space left"],
];

/** Dead letters of the five causes, in one queue. */
export async function deadLetters(api, count, queue = "orders") {
  const job = (n) => ({ kind: `kind-${n % 5}`, queue, payload: { n }, retry: "fixed:base=1s,jitter=none,retries=0" });
  await api.enqueue(Array.from({ length: count }, (_, n) => job(n)));
  await api.work(queue, (leased) => {
    const [errorClass, message] = CAUSES[Number(leased.kind.slice(5))];
    return { class: errorClass, message, permanent: true };
  });
}
