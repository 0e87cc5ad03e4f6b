// The choices of a request: what they are called, and which one a key stands for. Pure.

interface Choice {
  id: string;
  label?: string;
}

/** What a choice is called; one without a label, by its id in words. */
export function labelOf(c: Choice): string {
  if (c.label) return c.label;
  const words = c.id.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const meanings = {
  a: { id: "approve", label: /^(approve|allow|accept|yes|continue)\b/i },
  d: { id: "deny", label: /^(deny|reject|refuse|decline|no|stop)\b/i },
};

/** The choice that `a` approves with, or `d` denies with; "" if none does. The id
 * decides as it does for the hub; only where no id does, the label's first word. */
export function meant(key: "a" | "d", choices: readonly Choice[]): string {
  const { id, label } = meanings[key];
  const found = choices.find((c) => c.id === id) ?? choices.find((c) => c.id.startsWith(`${id}_`)) ?? choices.find((c) => !/^(approve|deny)(_|$)/.test(c.id) && label.test(labelOf(c)));
  return found?.id ?? "";
}
