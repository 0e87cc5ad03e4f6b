// Agents' words are data: what could hide, reorder or forge is shown as an escape.

const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

export function visible(text: string): string {
  return text.replace(hidden, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

/** One line of at most `most` characters. */
export function line(text: string, most = 160): string {
  const cut = text.length > most * 2 ? text.slice(0, most * 2) : text;
  const flat = visible(cut.replace(/\s+/g, " ").trim());
  const chars = [...flat];
  return chars.length > most ? chars.slice(0, most - 1).join("") + "…" : flat;
}
