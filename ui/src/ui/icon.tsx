import { memo } from "./memo";

// The drawings stand in index.html, so that a thousand rows use them without cost.
export const iconNames = [
  "logo", "overview", "inbox", "activity", "tools", "servers", "clients", "settings", "search", "copy", "close", "down", "right", "up", "left",
  "plus", "pause", "play", "out", "lock", "read", "write", "destr", "check", "block", "err", "cutoff", "run", "sun", "menu", "dots", "save",
  "shield", "shield-ok", "key", "again", "log", "clock", "file", "bolt", "off",
] as const;
export type IconName = (typeof iconNames)[number];

/** A drawing of 16 px, small of 14. It says nothing to a screen reader: the word stands beside it. */
export const Icon = memo(({ name, small = false }: { name: IconName; small?: boolean }) => (
  <svg class={small ? "i s" : "i"} aria-hidden="true"><use href={"#i-" + name} /></svg>
));
