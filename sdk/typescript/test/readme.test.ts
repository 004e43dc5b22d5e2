/** The quickstart of the README, with the package as users install it. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { DEADLINE, onBothStores } from "./server.js";

const SDK = fileURLToPath(new URL("../..", import.meta.url));

onBothStores("quickstart", (world) => {
  test("types, compiles and prints what the README says", async () => {
    const { folder, url } = world.server;
    const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: SDK });
    const installed = join(folder, "node_modules", "windlass");
    mkdirSync(installed, { recursive: true });
    execFileSync("tar", ["-xzf", join(folder, packed.toString().trim()), "-C", installed, "--strip-components=1"]);

    const readme = readFileSync(join(SDK, "README.md"), "utf8");
    const files = [...readme.matchAll(/```ts\n\/\/ (\w+\.ts)\n(.*?)```/gs)];
    assert.equal(files.length, 2);
    for (const [, name = "", code = ""] of files) writeFileSync(join(folder, name), code);
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    const options = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,esnext.disposable"];
    const types = ["--types", "node", "--typeRoots", join(SDK, "node_modules", "@types")];
    const compiler = join(SDK, "node_modules", "typescript", "bin", "tsc");
    execFileSync(process.execPath, [compiler, ...options, ...types, "worker.ts", "app.ts"], {
      cwd: folder,
      stdio: "inherit",
    });

    const env = { ...process.env, WINDLASS_SERVER: url };
    const worker = spawn(process.execPath, ["worker.js"], { cwd: folder, env, stdio: "inherit" });
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    try {
      const printed = execFileSync(process.execPath, ["app.js"], { cwd: folder, env, timeout: DEADLINE });
      assert.equal(printed.toString(), /\$ node app\.js\n(.*?)```/s.exec(readme)?.[1]);
    } finally {
      worker.kill("SIGTERM");
    }
    assert.equal(await ended, 0);
  });
});
