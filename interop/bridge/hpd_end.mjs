// One end of the test: the driver that does what HPD's TypeScript client does. It reads
// one command a line, as JSON, and answers each with one line.
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

const operations = {
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
