// A real hub, a real browser, and a page that may not complain.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

const binary = process.env.PARLEY ?? join(import.meta.dirname ?? ".", "../../bin/parley");

export class Hub {
  url = "";
  token = "";
  readonly data = mkdtempSync(join(tmpdir(), "parley-console-"));
  #process: ChildProcess | null = null;
  #port = "0";
  #flags: string[];

  constructor(flags: string[] = []) {
    this.#flags = flags;
  }

  async start(): Promise<this> {
    const child = spawn(binary, ["serve", "--data", this.data, "--listen", `127.0.0.1:${this.#port}`, "-o", "json", ...this.#flags], { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    hubs.add(this);
    let said = "";
    let errors = "";
    child.stderr!.on("data", (part: Buffer) => (errors += part.toString()));
    this.url = await new Promise<string>((resolve, reject) => {
      child.stdout!.on("data", (part: Buffer) => {
        said += part.toString();
        const found = /"url":\s*"([^"]+)"/.exec(said);
        if (found) resolve(found[1]!);
      });
      child.once("exit", (code) => reject(new Error(`parley ended with ${code}: ${errors}`)));
    });
    this.#port = new URL(this.url).port;
    return this;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  async end(): Promise<void> {
    await this.kill();
    hubs.delete(this);
    rmSync(this.data, { recursive: true, force: true });
  }

  async call<T>(method: string, path: string, body?: unknown, token = this.token): Promise<T> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (token) headers.Authorization = `Bearer ${token}`;
    const answer = await fetch(`${this.url}/v1/${path}`, body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  async key(role: string, agent?: string): Promise<string> {
    const made = await this.call<{ token: string }>("POST", "keys", agent ? { role, agent } : { role });
    if (role === "operator" && !this.token) this.token = made.token;
    return made.token;
  }

  async agent(name: string, kind?: string): Promise<string> {
    const made = await this.call<{ passport?: { agent_id: string }; agent_id?: string }>("POST", "agents", kind ? { name, kind } : { name });
    return made.passport?.agent_id ?? made.agent_id!;
  }
}

const hubs = new Set<Hub>();
let browser: Browser | null = null;

export async function open(hub: Hub, hash = "#/now", options: BrowserContextOptions & { complains?: RegExp } = {}): Promise<Page> {
  browser ??= await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  const { complains, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...rest });
  context.setDefaultTimeout(120_000); // a browser on a busy machine takes its time
  const page = await context.newPage();
  const complaints: string[] = [];
  (page as any).complaints = complaints;
  const note = (text: string) => {
    if (!complains?.test(text)) complaints.push(text);
  };
  page.on("pageerror", (err) => note(`error: ${err.message}`));
  page.on("dialog", (dialog) => {
    note(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // A refused fetch is told by the browser itself; the page shows it too.
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text())) note(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(hub.url) && !request.url().startsWith("data:")) note(`request: ${request.url()}`);
  });
  await page.addInitScript(() => addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`)));
  await page.goto(`${hub.url}/console/${hash}`);
  return page;
}

/** Ends a page; it fails if the page complained. */
export async function done(page: Page): Promise<void> {
  const complaints = (page as any).complaints as string[];
  await page.context().close();
  assert.deepEqual(complaints, []);
}

/** Ends what the tests of a file started, also what a failed one left: it would keep the run from ending. */
export async function closeAll(): Promise<void> {
  for (const hub of hubs) await hub.end();
  await browser?.close();
  browser = null;
}
