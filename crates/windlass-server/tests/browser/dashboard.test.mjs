// The dashboard in a real browser, on each store. Nothing may be logged as an error or leave the host.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { axe, client, deadLetters, plainEnv, startBrowser, startServer } from "./harness.mjs";
import { NASTY } from "./nasty.mjs";

const STORES = process.env.WINDLASS_TEST_POSTGRES ? ["sqlite", "postgres"] : ["sqlite"];
const PAGES = ["/", "/?span=5m", "/?span=24h", "/queues", "/jobs", "/dead-letters", "/schedules", "/policies", "/workers",
  "/alerts", "/audit"];

for (const store of STORES) {
  // The second store runs a shorter version.
  const dead = store === "sqlite" ? 5000 : 500;

  describe(store, () => {
    let server, api, browser, page;

    before(async () => {
      server = await startServer(store);
      api = client(server.address);
      browser = await startBrowser(server.address);
      page = browser.page;
    });
    after(async () => {
      await browser?.stop();
      await server?.stop();
    });
    const clean = () => assert.deepEqual(browser.faults.splice(0), []);
    const live = () => page.waitForSelector("#pulse[data-state=live]");

    test("each page renders while there is nothing, and teaches the next step", async () => {
      for (const path of PAGES) {
        const response = await page.goto(path);
        assert.equal(response.status(), 200, path);
        if (store === "sqlite") assert.deepEqual(await axe(page), [], path);
      }
      await page.goto("/dead-letters");
      assert.match(await page.textContent("main"), /No dead letters/);
      clean();
    });

    test("dead letters of five causes are dealt with to zero", async () => {
      await deadLetters(api, dead);
      await page.goto("/dead-letters");
      assert.equal(await page.locator(".group").count(), 5);
      await live();
      for (let left = 5; left > 0; left--) {
        if (left % 2) {
          await page.selectOption("select[name=rate]", "");
          await page.locator(".group").first().getByRole("button", { name: "Replay" }).click();
        } else {
          await page.fill("#reason", "not needed any more");
          await page.locator(".group").first().getByRole("button", { name: "Discard" }).click();
        }
        await page.waitForURL(/operations/);
        await page.getByRole("heading", { name: "Done" }).waitFor();
        assert.match((await page.textContent("#operation-done")).replaceAll("\u202f", ""), new RegExp(`${dead / 5} changed`));
        await page.getByRole("link", { name: "To the dead letters" }).click();
        await page.waitForFunction((n) => document.querySelectorAll(".group").length === n, left - 1);
      }
      assert.match(await page.textContent("main"), /No dead letters/);
      await api.work("orders", () => ({ complete: true }));
      clean();
    });

    test("dead letters are dealt with by keys alone", async () => {
      await deadLetters(api, 25, "keys");
      await page.goto("/");
      await live();
      await page.keyboard.press("g");
      await page.keyboard.press("d");
      await page.waitForURL(/dead-letters/);
      await live();
      for (let left = 5; left > 0; left--) {
        await page.keyboard.press("j");
        assert.equal(await page.locator(".group.current").count(), 1);
        await page.keyboard.press("x");
        await page.keyboard.type("by keys");
        await page.keyboard.press("Escape");
        await page.keyboard.press("x");
        await page.waitForURL(/operations/);
        await page.getByRole("heading", { name: "Done" }).waitFor();
        await page.waitForLoadState("load");
        await page.keyboard.press("g");
        await page.keyboard.press("d");
        await page.waitForURL(/dead-letters/);
        await live();
        await page.waitForFunction((n) => document.querySelectorAll(".group").length === n, left - 1);
      }
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor();
      await page.keyboard.press("Escape");
      clean();
    });

    test("a job that is retried changes without a reload", async () => {
      const job = await api.call("POST", "/jobs", { kind: "live", queue: "live", payload: {}, retry: "fixed:base=1h,jitter=none,retries=3" });
      await page.goto(`/jobs/${job.id}`);
      await live();
      await page.evaluate(() => { globalThis.neverReloaded = true; });
      await api.work("live", () => ({ class: "Timeout", message: "no answer" }));
      await page.locator("h1 + .state.retrying").waitFor();
      assert.equal(await page.locator(".timeline li").count(), 1);
      assert.match(await page.textContent(".timeline"), /retry 1\/3: backoff 1h/);
      assert.equal(await page.evaluate(() => globalThis.neverReloaded), true);
      await page.getByRole("button", { name: "Run now" }).click();
      await page.getByText("It was waiting and is due now.").waitFor();
      await live();
      await api.work("live", () => ({ complete: true, result: { ok: true } }));
      await page.locator("h1 + .state.succeeded").waitFor();
      clean();
    });

    test("all jobs of a filter are cancelled after a count, and the audit has it", async () => {
      await api.enqueue(Array.from({ length: 1200 }, () => ({ kind: "bulk", queue: "bulk", payload: {}, delay: "1h" })));
      await page.goto("/jobs?queue=bulk&state=queued");
      await page.getByRole("link", { name: "Cancel…" }).click();
      await page.getByRole("heading", { name: /Cancel 1.200 jobs\?/ }).waitFor();
      await page.fill("#confirm", "cancel");
      await page.getByRole("button", { name: /Cancel/ }).click();
      await page.getByRole("heading", { name: "Done" }).waitFor();
      assert.match((await page.textContent("#operation-done")).replaceAll("\u202f", ""), /1200 changed/);
      const undo = page.getByRole("button", { name: "Undo" });
      await undo.waitFor();
      if (store === "sqlite") assert.deepEqual(await axe(page), []);
      const operation = page.url();
      await page.goto("/audit");
      assert.match(await page.textContent("tbody tr"), /cancel.*queue="bulk"/s);
      // The undo sends exactly these again, once.
      await api.enqueue([{ kind: "bulk", queue: "bulk", payload: {}, delay: "1h" }]);
      await page.goto(operation);
      await undo.click();
      await page.getByText(/undo of: cancel/).waitFor();
      await page.getByRole("heading", { name: "Done" }).waitFor();
      assert.match((await page.textContent("#operation-done")).replaceAll("\u202f", ""), /1200 changed/);
      await page.goto(operation);
      assert.equal(await undo.count(), 0);
      clean();
    });

    test("all waiting jobs of a filter get another priority", async () => {
      await page.goto("/jobs?queue=bulk&state=queued");
      await page.getByRole("link", { name: "Priority…" }).click();
      await page.getByRole("heading", { name: /Change the priority of 1.201 jobs\?/ }).waitFor();
      if (store === "sqlite") assert.deepEqual(await axe(page), []);
      await page.selectOption("#priority", "highest");
      await page.fill("#confirm", "priority");
      await page.getByRole("button", { name: /Change/ }).click();
      await page.getByRole("heading", { name: "Done" }).waitFor();
      const { items } = await api.call("GET", "/jobs?queue=bulk&state=queued&limit=1000");
      assert.ok(items.length > 0 && items.every((job) => job.priority === "highest"));
      await page.goto("/audit");
      assert.match(await page.textContent("tbody tr"), /change priority.*priority highest for.*queue="bulk"/s);
      clean();
    });

    test("a queue is paused, seen as paused, and resumed", async () => {
      await page.goto("/queues");
      const row = page.locator("tr", { hasText: "bulk" });
      await row.getByRole("button", { name: "Pause" }).click();
      await page.getByText("bulk is paused.").waitFor();
      const queues = await api.call("GET", "/queues");
      assert.equal(queues.items.find((queue) => queue.name === "bulk").paused, true);
      await page.locator("tr", { hasText: "bulk" }).getByRole("button", { name: "Resume" }).click();
      await page.getByText("bulk runs again.").waitFor();
      clean();
    });

    test("limits are previewed and saved, keys held and released, and jobs say why they wait", async () => {
      await api.enqueue(Array.from({ length: 3 }, () => ({ kind: "limited", queue: "limited", payload: {}, limitKey: "acme" })));
      await page.goto("/queues/default/limited");
      await live();
      assert.match(await page.textContent("main"), /No limits/);
      await page.getByLabel("at once, each key").fill("many");
      await page.getByRole("button", { name: "Preview limits" }).click();
      await page.getByRole("alert").waitFor();
      await page.getByLabel("at once, each key").fill("1");
      await page.getByRole("button", { name: "Preview limits" }).click();
      await page.getByText("at most 1 at once for each key").waitFor();
      await page.getByRole("button", { name: "Save limits" }).click();
      await page.getByText("The limits hold on every node within two seconds.").waitFor();
      const { jobs } = await api.call("POST", "/leases", { worker: "browser-test", queues: ["limited"], max: 10 });
      assert.equal(jobs.length, 1);
      await page.goto("/queues/default/limited");
      await page.getByRole("row", { name: /acme 1 of 1 2/ }).waitFor();
      await page.goto(`/jobs/${jobs[0].id + 2}`);
      assert.match(await page.textContent("#why"), /attempts of the key acme of the queue limited are running.*after 1/s);
      await page.goto("/");
      assert.match(await page.textContent("[aria-labelledby=waits]"), /a limit: too many run at once\s*limited/);
      await page.goto("/queues/default/limited");
      await page.getByText("Hold the queue, or one of its keys").click();
      await page.getByLabel("for", { exact: true }).fill("10m");
      await page.getByLabel("key (empty: the whole queue)").fill("acme");
      await page.getByLabel("reason").fill("repairs");
      await page.getByRole("button", { name: "Hold", exact: true }).click();
      await page.getByText(/acme of limited is held until/).waitFor();
      if (store === "sqlite") assert.deepEqual(await axe(page), []);
      await page.goto("/queues");
      await page.getByRole("row", { name: /limited acme .*repairs/ }).waitFor();
      if (store === "sqlite") assert.deepEqual(await axe(page), []);
      await page.goto(`/jobs/${jobs[0].id + 1}`);
      assert.match(await page.textContent("#why"), /stops the key acme of the queue limited \(repairs\)/);
      await page.goto("/queues/default/limited");
      await page.getByRole("button", { name: "Release" }).click();
      await page.getByText("Released. Starts are slow at first.").waitFor();
      clean();
    });

    test("an alert rule is set, turned off and on again without a restart", async () => {
      await page.goto("/alerts");
      await page.getByText("Add or change a rule").click();
      await page.fill("details [name=name]", "mail-age");
      await page.selectOption("details [name=measure]", "oldest_due");
      await page.fill("details [name=threshold]", "soon");
      await page.getByRole("button", { name: "Set the rule" }).click();
      await page.getByText(/threshold.*must be a duration/).waitFor();
      browser.faults.length = 0; // The browser logs the refused form.
      await page.goto("/alerts");
      await page.getByText("Add or change a rule").click();
      await page.fill("details [name=name]", "mail-age");
      await page.selectOption("details [name=measure]", "oldest_due");
      await page.fill("details [name=threshold]", "2m");
      await page.fill("details [name=queue]", "mail");
      await page.getByRole("button", { name: "Set the rule" }).click();
      await page.getByText("The rule mail-age is set.").waitFor();
      const row = (name) => page.locator("tr", { hasText: name });
      assert.match(await row("mail-age").textContent(), /oldest_due.*2m.*mail.*an operator/s);
      await row("retry_rate").getByRole("button", { name: "Turn off" }).click();
      await page.getByText("The rule retry_rate is off.").waitFor();
      await row("retry_rate").getByRole("button", { name: "Turn on" }).click();
      await row("retry_rate").getByRole("button", { name: "Turn off" }).waitFor();
      await row("mail-age").getByRole("button", { name: "Reset" }).click();
      await page.getByText("The rule mail-age is as files and defaults say.").waitFor();
      assert.equal(await row("mail-age").count(), 0);
      if (store === "sqlite") assert.deepEqual(await axe(page), []);
      clean();
    });

    test("the playground shows a line while it is typed", async () => {
      await page.goto("/policies");
      await page.fill("#line", "fixed:base=7s,jitter=none,retries=3");
      await page.getByText("7s", { exact: true }).first().waitFor();
      assert.match(await page.textContent("#words + p"), /7/);
      assert.equal(await page.locator("svg.load").count(), 1);
      await page.fill("#line", "exponentiel:base=1s");
      await page.locator("[role=alert]").waitFor();
      clean();
    });

    test("each page renders with data, has nothing serious for axe, and is small", async () => {
      await deadLetters(api, 10, "shown");
      const schedule = await api.call("POST", "/schedules", { cron: "*/5 * * * *", timezone: "Europe/Berlin", job: { kind: "report", queue: "reports" } });
      const [letter] = (await api.call("GET", "/dead-letters?limit=1")).items;
      await page.goto("/dead-letters");
      const group = await page.locator('a[href*="/dead-letters/group"]').first().getAttribute("href");
      const paths = [...PAGES, `/jobs/${letter.id}`, `/schedules/${schedule.id}`, "/queues/default/shown",
        "/jobs/bulk/cancel?queue=shown", "/jobs/bulk/replay?queue=shown", "/jobs/bulk/priority?queue=shown",
        "/dead-letters/all/discard", "/dead-letters/all/replay", group, "/jobs?q=kind-1", "/sign-in"];
      for (const path of paths) {
        const response = await page.goto(path);
        assert.equal(response.status(), 200, path);
        assert.ok((await response.body()).length < 100 * 1024, `${path} weighs ${(await response.body()).length}`);
        assert.deepEqual(await axe(page), [], path);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${path} scrolls sideways`);
      }
      const assets = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => [entry.name, entry.decodedBodySize]));
      assert.ok(assets.reduce((sum, [, size]) => sum + size, 0) < 60 * 1024, JSON.stringify(assets));
      clean();
    });

    test("pages fit a phone of 360 px", async () => {
      await page.setViewportSize({ width: 360, height: 740 });
      for (const path of [...PAGES, "/queues/default/shown"]) {
        await page.goto(path);
        const wide = await page.evaluate(() => [...document.querySelectorAll("body *")]
          .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll, .places, pre, svg"))
          .map((element) => element.outerHTML.slice(0, 120)));
        assert.deepEqual(wide, [], path);
      }
      await page.setViewportSize({ width: 1280, height: 900 });
      clean();
    });

    test("text of an attacker stays text", { skip: store !== "sqlite" }, async () => {
      // Kinds are names and keys are printable; payloads and errors may be anything.
      const printable = (text, most) => [...text.replace(/\p{C}/gu, "")].slice(0, most).join("").trim() || "x";
      const jobs = NASTY.map((text, n) => ({ kind: "nasty", queue: "nasty", payload: { [text]: text },
        idempotencyKey: printable(`${n} ${text}`, 30), retry: "fixed:base=1s,jitter=none,retries=0" }));
      await api.enqueue(jobs);
      const texts = NASTY[Symbol.iterator]();
      await api.work("nasty", () => {
        const text = texts.next().value;
        return { class: printable(text, 30), message: text, permanent: true };
      });
      await page.goto("/");
      const { items } = await api.call("GET", "/jobs?queue=nasty&limit=1000");
      const paths = ["/jobs?queue=nasty", "/dead-letters", "/audit", "/jobs?q=%3Cscript", ...items.slice(0, 12).map((job) => `/jobs/${job.id}`)];
      for (const path of paths) {
        await page.goto(path);
        assert.equal(await page.evaluate(() => globalThis.pwned), undefined, path);
        assert.equal(await page.locator("main img, main iframe, main script, main object").count(), 0, path);
      }
      for (const text of NASTY.slice(0, 40)) await page.goto("/policies?line=" + encodeURIComponent(text));
      clean();
    });

    test("pages read and act without scripts", async () => {
      const plain = await startBrowser(server.address, { javaScriptEnabled: false });
      const job = await api.call("POST", "/jobs", { kind: "plain", queue: "plain", payload: {}, delay: "1h" });
      await plain.page.goto(`/jobs/${job.id}`);
      await plain.page.getByRole("button", { name: "Cancel" }).click();
      await plain.page.getByText("It is cancelled.").waitFor();
      await plain.page.goto("/");
      assert.ok(await plain.page.locator("svg.plot").count() >= 4);
      await plain.stop();
    });

    test("a browser signs in with a token, and a read-only one changes nothing", async () => {
      const mint = (...scopes) => {
        const flags = scopes.flatMap((scope) => ["--scope", scope]);
        const output = execFileSync(process.env.WINDLASS_BIN, ["token", "create", "t", ...flags, "--store", server.store],
          { env: plainEnv({ WINDLASS_SCHEMA: server.schema }), cwd: server.home, encoding: "utf8" });
        return output.match(/wl_[0-9a-f]+_[0-9a-f]+/)[0];
      };
      const token = mint("read");
      // The first token closes the server within seconds. Asked outside the page: `waitForFunction` takes a promise for
      // its result.
      const isClosed = async () => (await fetch(`${server.address}/api/v1/stats`)).status === 401;
      while (!(await isClosed())) await setTimeout(100);
      await page.goto("/queues");
      await page.waitForURL(/sign-in/);
      browser.faults.length = 0; // The open page's live stream was refused, and the browser logs that.
      assert.deepEqual(await axe(page), []);
      await page.fill("#token", token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.waitForURL(/queues/);
      assert.match(await page.textContent(".banner"), /read-only/);
      assert.equal(await page.getByRole("button", { name: "Pause" }).count(), 0);
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.waitForURL(/sign-in/);
      await page.goto("/jobs");
      await page.waitForURL(/sign-in/);
      clean();
    });
  });
}
