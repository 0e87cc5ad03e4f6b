// Markdown as a tree of plain values. marked's lexer finds the structure; no HTML
// is made, and what is HTML in the text stays text.
import { Lexer, type Token, type Tokens } from "marked";
import { visible } from "./text.ts";

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "em" | "del"; of: Inline[] }
  | { kind: "link"; href: string; host: string; of: Inline[] }
  | { kind: "image"; address: string; text: string }
  | { kind: "break" };

export type Block =
  | { kind: "paragraph"; of: Inline[] }
  | { kind: "heading"; level: number; of: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "quote"; of: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const most = { bytes: 64 * 1024, tokens: 2000, levels: 16 };

/** The tree of a text, or null if it is too large to be shown as more than text. */
export function markdown(text: string): Block[] | null {
  if (text.length > most.bytes || tooDeep(text)) return null;
  try {
    const budget = { tokens: most.tokens };
    return blocks(new Lexer({ gfm: true }).lex(text), 1, budget);
  } catch {
    return null;
  }
}

// The lexer recurses into quotes and lists, so the depth is judged before.
function tooDeep(text: string): boolean {
  return new RegExp(`(^|\\n)[ \\t]*(?:>[ \\t]*){${most.levels},}`).test(text) || new RegExp(`(^|\\n)[ \\t]{${most.levels * 2},}(?:[-*+]|\\d+[.)])[ \\t]`).test(text) || /[*_~[\]()]{200,}/.test(text);
}

class TooLarge extends Error {}

function spend(level: number, budget: { tokens: number }): void {
  if (level > most.levels || --budget.tokens < 0) throw new TooLarge();
}

function blocks(tokens: Token[], level: number, budget: { tokens: number }): Block[] {
  const out: Block[] = [];
  for (const token of tokens) {
    spend(level, budget);
    switch (token.type) {
      case "space":
        break;
      case "paragraph":
      case "text":
        out.push({ kind: "paragraph", of: inlines((token as Tokens.Text).tokens ?? [token], level + 1, budget) });
        break;
      case "heading":
        out.push({ kind: "heading", level: (token as Tokens.Heading).depth, of: inlines(token.tokens ?? [], level + 1, budget) });
        break;
      case "code":
        out.push({ kind: "code", text: visible((token as Tokens.Code).text) });
        break;
      case "blockquote":
        out.push({ kind: "quote", of: blocks(token.tokens ?? [], level + 1, budget) });
        break;
      case "list": {
        const list = token as Tokens.List;
        out.push({ kind: "list", ordered: list.ordered, start: Number(list.start) || 1, items: list.items.map((item) => blocks(item.tokens, level + 1, budget)) });
        break;
      }
      case "table": {
        const table = token as Tokens.Table;
        out.push({
          kind: "table",
          head: table.header.map((cell) => inlines(cell.tokens, level + 1, budget)),
          rows: table.rows.map((row) => row.map((cell) => inlines(cell.tokens, level + 1, budget))),
        });
        break;
      }
      case "hr":
        out.push({ kind: "rule" });
        break;
      default:
        out.push({ kind: "paragraph", of: [{ kind: "text", text: visible(token.raw) }] });
    }
  }
  return out;
}

function inlines(tokens: Token[], level: number, budget: { tokens: number }): Inline[] {
  const out: Inline[] = [];
  for (const token of tokens) {
    spend(level, budget);
    switch (token.type) {
      case "text":
        if ("tokens" in token && token.tokens) out.push(...inlines(token.tokens, level + 1, budget));
        else out.push({ kind: "text", text: visible((token as Tokens.Text).text) });
        break;
      case "escape":
        out.push({ kind: "text", text: visible((token as Tokens.Escape).text) });
        break;
      case "codespan":
        out.push({ kind: "code", text: visible((token as Tokens.Codespan).text) });
        break;
      case "strong":
      case "em":
      case "del":
        out.push({ kind: token.type, of: inlines(token.tokens ?? [], level + 1, budget) });
        break;
      case "link": {
        const of = inlines(token.tokens ?? [], level + 1, budget);
        const target = safe((token as Tokens.Link).href);
        if (target) out.push({ kind: "link", ...target, of });
        else out.push({ kind: "text", text: visible(token.raw) });
        break;
      }
      case "image":
        out.push({ kind: "image", address: visible((token as Tokens.Image).href), text: visible((token as Tokens.Image).text) });
        break;
      case "br":
        out.push({ kind: "break" });
        break;
      default:
        out.push({ kind: "text", text: visible(token.raw) });
    }
  }
  return out;
}

/** The address of a link that may be followed, with the host it leads to. */
export function safe(href: string): { href: string; host: string } | null {
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return null;
  }
  if (url.protocol === "http:" || url.protocol === "https:") return { href: url.href, host: url.host };
  if (url.protocol === "mailto:") return { href: url.href, host: visible(url.pathname) };
  return null;
}
