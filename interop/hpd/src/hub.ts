// Starts the command in a data folder of its own and reports statements.
import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname ?? ".", "../../../..");

export class Hub {
  private constructor(readonly url: string, private child: ChildProcess, private dir: string) {}
  static async start(): Promise<Hub> {
    const dir = mkdtempSync(join(tmpdir(), "parley-hpd-"));
    const port = await freePort();
    const child = spawn(join(root, "bin/parley"), ["serve", "--data", dir, "--listen", `127.0.0.1:${port}`], { stdio: ["ignore", "ignore", "inherit"] });
    const hub = new Hub(`http://127.0.0.1:${port}/hpd`, child, dir);
    const ready = `http://127.0.0.1:${port}/readyz`;
    for (let i = 0; i < 200; i++) {
      try { if ((await fetch(ready)).ok) return hub; } catch { /* not yet */ }
      await new Promise((r) => setTimeout(r, 50));
    }
    throw new Error("the hub did not become ready");
  }
  async stop() {
    const gone = new Promise((r) => this.child.once("exit", r));
    this.child.kill("SIGTERM");
    await gone;
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const s = createServer();
    s.once("error", fail);
    s.listen(0, "127.0.0.1", () => { const a = s.address(); s.close(() => done(typeof a === "object" && a ? a.port : 0)); });
  });
}

const out = join(root, "build/conformance");
// check runs a test that holds statements, one line of the report for each.
export function check(statements: string, name: string, fn: () => Promise<void>) {
  test(`${statements}: ${name}`, { timeout: 30_000 }, async () => {
    let passed = false;
    try { await fn(); passed = true; } finally {
      mkdirSync(out, { recursive: true });
      for (const statement of statements.split(" ")) appendFileSync(join(out, "hpd.jsonl"), JSON.stringify({ statement, test: name, passed }) + "\n");
    }
  });
}
