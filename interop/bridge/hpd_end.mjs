// One end of the test: the driver that does what HPD's TypeScript client does. It reads
// one command a line, as JSON, and answers each with one line.
import { get } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Client } = await import(pathToFileURL(process.env.HPD_CLIENT).href);
const [, , base, token] = process.argv;
const client = new Client(base, "branches", "sse", { Authorization: `Bearer ${token}` });

// spoken are the texts of events, each with who said it.
function spoken(events) {
  const said = [];
  let author = "";
  for (const e of events) {
    if (e.type === "MESSAGE_STARTED") author = e.authorName;
    if (e.type === "TEXT_DELTA") said.push([author, e.text]);
  }
  return said;
}

// watch follows a channel as a browser's EventSource does: after a disconnect it
// reconnects with the id of the last event that had one, and gets what followed it again. It does
// not use fetch, which may wait for ever once its socket is gone (Node 20).
const seen = [];
function watch(channel, last = "0") {
  let text = "", held = [];
  const again = () => setTimeout(() => watch(channel, last), 100);
  const headers = { Authorization: `Bearer ${token}`, Accept: "text/event-stream", "Last-Event-ID": last };
  const req = get(`${base}/agents/any/sessions/${channel}/branches/main/events/live`, { headers, agent: false }, (res) => {
    res.setEncoding("utf8").on("error", () => {}).on("data", (part) => {
      const blocks = (text + part).split("\n\n");
      text = blocks.pop();
      for (const lines of blocks.map((block) => block.split("\n"))) {
        const data = lines.find((line) => line.startsWith("data: "));
        if (data) held.push(JSON.parse(data.slice(6)));
        const id = lines.find((line) => line.startsWith("id: "));
        if (!id) continue;
        last = id.slice(4);
        seen.push(...spoken(held));
        held = [];
      }
    });
  });
  req.on("error", () => {}).on("close", again);
}

const operations = {
  async watch({ channel }) { watch(channel); return {}; },
  async watched() { return { said: seen }; },
  async read({ channel }) { return { said: spoken(await client.getBranchEvents(channel, "main")) }; },
  async say({ channel, text }) {
    return client.json("POST", `/agents/any/sessions/${channel}/branches/main/inputs`, { type: "USER_TEXT_INPUT", text });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...args } = JSON.parse(line);
  let answer;
  try { answer = await operations[op](args); } catch (failed) { answer = { error: String(failed) }; }
  process.stdout.write(JSON.stringify(answer ?? {}) + "\n");
}
