// Notifications of what waits for a person: only if they were asked for here, and
// only while nobody looks.
import { many } from "./time.ts";

const there = typeof Notification !== "undefined";
let permission = $state(there ? Notification.permission : "denied");
let wanted = $state(localStorage.getItem("parley-notify") === "on");
let before = -1;

export const notices = {
  get on(): boolean {
    return wanted && permission === "granted";
  },
  /** Whether the browser could show any. */
  get possible(): boolean {
    return permission !== "denied";
  },
};

export async function notify(on: boolean): Promise<void> {
  if (on && there) permission = await Notification.requestPermission();
  wanted = on;
  localStorage.setItem("parley-notify", on ? "on" : "off");
}

/** Tells how many wait; more than before is worth a word. */
export function told(waiting: number): void {
  if (waiting > before && before >= 0 && notices.on && document.hidden) new Notification("Parley", { body: `${many(waiting, "waits", "wait")} for a person`, tag: "parley" });
  before = waiting;
}
