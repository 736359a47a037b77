import { memo } from "./memo";

// Each is one path: a drawing that is referred to by <use> is copied by the browser for
// every place it stands at, which a thousand rows pay for when they scroll.
const drawings = {
  logo: "M1.5 3.5H5L8.5 8H14.5M1.5 8h7M1.5 12.5H5L8.5 8",
  overview: "M2 13.5h12M3.5 11V8M6.5 11V4.5M9.5 11V6.5M12.5 11V2.5",
  inbox: "M2 9.5 3.8 3.4a1 1 0 0 1 1-.7h6.4a1 1 0 0 1 1 .7L14 9.5v2.8a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1zM2 9.5h3.2l1 1.6h3.6l1-1.6H14",
  activity: "M2 4h12M2 8h8M2 12h10M13.6 8a.6 .6 0 1 1-1.2 0 .6 .6 0 1 1 1.2 0z",
  tools: "M11.4 7a4.4 4.4 0 1 1-8.8 0 4.4 4.4 0 1 1 8.8 0zM10.3 10.3l3.4 3.4M5.4 7h3.2",
  servers: "M3 2.5h10a1 1 0 0 1 1 1v2.6a1 1 0 0 1-1 1h-10a1 1 0 0 1-1-1v-2.6a1 1 0 0 1 1-1zM3 8.9h10a1 1 0 0 1 1 1v2.6a1 1 0 0 1-1 1h-10a1 1 0 0 1-1-1v-2.6a1 1 0 0 1 1-1zM4.6 4.8h.01M4.6 11.2h.01",
  clients: "M5.5 2v3M10.5 2v3M3.8 5h8.4v2.4A4.2 4.2 0 0 1 8 11.6a4.2 4.2 0 0 1-4.2-4.2zM8 11.6V14",
  settings: "M2 4.5h7M12.5 4.5H14M2 11.5h2M7.5 11.5H14M12.4 4.5a1.7 1.7 0 1 1-3.4 0 1.7 1.7 0 1 1 3.4 0zM7.4 11.5a1.7 1.7 0 1 1-3.4 0 1.7 1.7 0 1 1 3.4 0z",
  search: "M11.4 7a4.4 4.4 0 1 1-8.8 0 4.4 4.4 0 1 1 8.8 0zM10.3 10.3l3.4 3.4",
  copy: "M6.9 5.5h5.2a1.4 1.4 0 0 1 1.4 1.4v5.2a1.4 1.4 0 0 1-1.4 1.4h-5.2a1.4 1.4 0 0 1-1.4-1.4v-5.2a1.4 1.4 0 0 1 1.4-1.4zM10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2",
  close: "m4 4 8 8M12 4l-8 8",
  down: "m4.5 6.5 3.5 3.5 3.5-3.5",
  right: "m6.5 4.5 3.5 3.5-3.5 3.5",
  up: "m4.5 9.5 3.5-3.5 3.5 3.5",
  left: "m9.5 4.5-3.5 3.5 3.5 3.5",
  plus: "M8 3.5v9M3.5 8h9",
  pause: "M5.5 4v8M10.5 4v8",
  play: "M5 3.5v9l7-4.5z",
  out: "M9.5 2.5h4v4M13.5 2.5 7.5 8.5M11.5 9.5v3a1 1 0 0 1-1 1h-7a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1h3",
  lock: "M4.7 7h6.6a1.2 1.2 0 0 1 1.2 1.2v4.1a1.2 1.2 0 0 1-1.2 1.2h-6.6a1.2 1.2 0 0 1-1.2-1.2v-4.1a1.2 1.2 0 0 1 1.2-1.2zM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  read: "M12.6 8a4.6 4.6 0 1 1-9.2 0 4.6 4.6 0 1 1 9.2 0z",
  write: "m10.2 3.2 2.6 2.6-7 7-3.2.6.6-3.2zM8.8 4.6l2.6 2.6",
  destr: "M8 2.4 14.2 13H1.8zM8 6.6v3M8 11.3h.01",
  check: "m3.5 8.5 3 3 6-7",
  block: "M13.4 8a5.4 5.4 0 1 1-10.8 0 5.4 5.4 0 1 1 10.8 0zM4.3 11.7l7.4-7.4",
  err: "M13.4 8a5.4 5.4 0 1 1-10.8 0 5.4 5.4 0 1 1 10.8 0zM8 5.2v3.3M8 10.8h.01",
  cutoff: "M2.5 8H7M9 5.5l2.5 5M13.5 8H12",
  run: "M8 2.6a5.4 5.4 0 1 1-5.4 5.4",
  sun: "M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 1 1 5.6 0zM8 1.8v1M8 13.2v1M1.8 8h1M13.2 8h1M3.6 3.6l.7.7M11.7 11.7l.7.7M12.4 3.6l-.7.7M4.3 11.7l-.7.7",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  dots: "M3.8 8a.3 .3 0 1 1-.6 0 .3 .3 0 1 1 .6 0zM8.3 8a.3 .3 0 1 1-.6 0 .3 .3 0 1 1 .6 0zM12.8 8a.3 .3 0 1 1-.6 0 .3 .3 0 1 1 .6 0z",
  save: "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.5 13.5h11",
  shield: "M8 1.9 13 3.8v4c0 3-2.1 5.2-5 6.3-2.9-1.1-5-3.3-5-6.3v-4z",
  "shield-ok": "M8 1.9 13 3.8v4c0 3-2.1 5.2-5 6.3-2.9-1.1-5-3.3-5-6.3v-4zM5.8 8l1.6 1.6 2.9-3.2",
  key: "M7.9 10.8a2.7 2.7 0 1 1-5.4 0 2.7 2.7 0 1 1 5.4 0zM7.2 8.8l6-6M11 5l1.8 1.8",
  again: "M13 8a5 5 0 1 1-1.5-3.5M13 2.5v3h-3",
  log: "m3 4.5 3 3-3 3M8 11.5h5",
  clock: "M13.4 8a5.4 5.4 0 1 1-10.8 0 5.4 5.4 0 1 1 10.8 0zM8 5v3.2l2 1.3",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  bolt: "M9 1.8 3.5 9H8l-1 5.2L12.5 7H8z",
  off: "M8 2.5v5M4.7 4.4a5 5 0 1 0 6.6 0",
} as const;
export type IconName = keyof typeof drawings;

/** An icon of 16 px, or 14 if small. Hidden from screen readers, since a label is next to it. */
export const Icon = memo(({ name, small = false }: { name: IconName; small?: boolean }) => (
  <svg class={small ? "i s" : "i"} viewBox="0 0 16 16" aria-hidden="true"><path d={drawings[name]} /></svg>
));
