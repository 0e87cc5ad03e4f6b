// Draws the console's picture for the README: a channel with its reasons, from the
// story of the seed program. PARLEY names the binary; the seed program lies beside it.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { chromium } from "playwright-core";

const binary = process.env.PARLEY ?? join(import.meta.dirname, "../bin/parley");
const out = join(import.meta.dirname, "../docs/images");
const data = mkdtempSync(join(tmpdir(), "parley-picture-"));
const story = JSON.parse(execFileSync(join(dirname(binary), "console-seed"), ["-data", data, "-scene", "story"]).toString());
const hub = spawn(binary, ["serve", "--data", data, "--listen", "127.0.0.1:0", "-o", "json"], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const url = await new Promise((resolve, reject) => {
    let said = "";
    hub.stdout.on("data", (part) => {
      said += part;
      const found = /"url":\s*"([^"]+)"/.exec(said);
      if (found) resolve(found[1]);
    });
    hub.once("exit", (code) => reject(new Error(`parley ended with ${code}`)));
  });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, deviceScaleFactor: 1, colorScheme: "light" });
  await page.goto(`${url}/console/#/channels/${story.channel_id}?why`);
  await page.getByText("is next because rule").waitFor();
  await page.getByText("Found it").waitFor();
  await page.evaluate(() => document.fonts.ready);
  mkdirSync(out, { recursive: true });
  await page.screenshot({ path: join(out, "console-channel.png") });
  await browser.close();
} finally {
  hub.kill("SIGKILL");
  await new Promise((resolve) => (hub.exitCode === null && hub.signalCode === null ? hub.once("exit", resolve) : resolve()));
  rmSync(data, { recursive: true, force: true });
}
