import { readdirSync } from "node:fs";
import { defineConfig } from "vite";

// Tests are written in TypeScript and run by Node's own runner: this strips them.
export default defineConfig({
  build: {
    ssr: true,
    outDir: ".test",
    target: "node20",
    rolldownOptions: {
      input: Object.fromEntries(readdirSync("test").filter((f) => /\.(test|soak)\.ts$/.test(f)).map((f) => [f.replace(/\.ts$/, ""), `test/${f}`])),
      output: { entryFileNames: "[name].mjs", chunkFileNames: "[name].mjs" },
    },
  },
});
