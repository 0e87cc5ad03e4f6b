import { svelte } from "@sveltejs/vite-plugin-svelte";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vite";

// licences writes the licence of every package that is in the bundle.
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle(_, bundle) {
      const packages = new Map<string, string>();
      for (const part of Object.values(bundle)) {
        if (part.type !== "chunk") continue;
        for (const id of Object.keys(part.modules)) {
          const found = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(id.replaceAll("\\", "/").replace("\0", ""));
          if (found) packages.set(found[2]!, found[1]!);
        }
      }
      const texts = [...packages].sort().map(([name, folder]) => {
        const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string; license: string };
        const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
        return `${name} ${about.version} (${about.license})\n\n${file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : ""}\n`;
      });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join("\n---\n\n") });
    },
  };
}

// The page is served below any path, so every address in it is relative. One
// script and one style sheet under names that never change: the server adds
// what they hold to their addresses. Only the graph's layout comes later.
export default defineConfig({
  base: "./",
  plugins: [svelte(), licences()],
  build: {
    target: "es2023",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1024,
    rolldownOptions: {
      output: {
        entryFileNames: "app.js",
        assetFileNames: "app[extname]",
        chunkFileNames: "[name].js",
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ["/v1", "/hpd", "/agh", "/healthz"].map((path) => [path, process.env.PARLEY_HUB ?? "http://127.0.0.1:7440"]),
    ),
  },
});
