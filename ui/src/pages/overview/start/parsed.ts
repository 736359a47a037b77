import { useEffect, useState } from "preact/hooks";
import { api } from "../../../api/client";
import type { Parsed } from "../../../api/types";
import { useResource } from "../../../data/resource";

const pause = 200; // ms after the last letter

export interface ParsedText {
  data?: Parsed;
  error?: unknown;
  /** Whether data is of the text that stands there now: only that may be added. */
  current: boolean;
  reload: () => void;
}

/** Returns what the daemon makes of a text, some time after it was typed. */
export function useParsed(text: string): ParsedText {
  const [asked, ask] = useState("");
  useEffect(() => {
    const timer = setTimeout(ask, text.trim() ? pause : 0, text);
    return () => clearTimeout(timer);
  }, [text]);
  // The answer carries its text: while the next one is on its way the old one is still shown, but not acted on.
  const r = useResource(asked.trim() ? asked : null, async (signal) => ({ of: asked, data: await api.post<Parsed>("/servers/parse", { text: asked }, { signal }) }));
  const empty = !text.trim();
  return { current: !empty && r.data?.of === text && r.error === undefined, reload: r.reload, ...(empty || !r.data ? {} : { data: r.data.data }), ...(empty || r.error === undefined ? {} : { error: r.error }) };
}
