// Keys of the page. A screen names what a key does while it is shown.
let on = $state(localStorage.getItem("parley-letters") !== "off");

export const letters = {
  get on() {
    return on;
  },
  set on(value: boolean) {
    on = value;
    localStorage.setItem("parley-letters", value ? "on" : "off");
  },
};

/** What a key does; false says that it did nothing, and the browser may. */
type Action = (event: KeyboardEvent) => unknown;
const stack: Map<string, Action>[] = [];

/** Binds keys until the returned function is called; the newest binding wins. */
export function bind(actions: Record<string, Action>): () => void {
  const map = new Map(Object.entries(actions));
  stack.push(map);
  return () => {
    const at = stack.indexOf(map);
    if (at >= 0) stack.splice(at, 1);
  };
}

export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  const name = event.shiftKey && event.key.length === 1 && /[a-z]/i.test(event.key) ? `Shift ${event.key.toLowerCase()}` : event.key;
  if (!on && /^(Shift )?[a-z./[\]{}?]$/.test(name)) return;
  for (let i = stack.length - 1; i >= 0; i--) {
    const action = stack[i]!.get(name);
    if (action && action(event) !== false) {
      event.preventDefault();
      return;
    }
  }
}
