// The state of a text that is pasted to add servers: it is parsed as it is typed.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, explain } from "../api/client";
import type { Parsed, ParsedServer } from "../api/types";
import { servers as known } from "../data/shared";
import { bodyOf, nameTrouble, type Choice } from "../lib/paste";

/** A server of the text, as it would be added. trouble: why it cannot be. */
export interface Pasted { server: ParsedServer; name: string; choice: Choice; trouble: string; choose: (patch: Choice) => void }
/** How adding one went. */
export interface Added { name: string; error?: { message: string; hint: string } }

export interface Paste {
  text: string;
  setText: (text: string) => void;
  parsed?: Parsed;
  /** The text is being read, or what is shown is of an older text. */
  busy: boolean;
  error?: unknown;
  servers: readonly Pasted[];
  /** How many Add would add; 0 while the text is being read. */
  count: number;
  /** Adds them one after the other; it never throws: what failed says why. */
  add: () => Promise<Added[]>;
}

const pause = 150;

/** Returns the state of a box to paste servers into; <ParseBox of={…}> draws it. */
export function usePaste(): Paste {
  const [text, set] = useState("");
  const [found, setFound] = useState<{ text: string; parsed?: Parsed; error?: unknown }>({ text: "" });
  const [choices, setChoices] = useState<Record<string, Choice>>({});
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(known.want, []);
  useEffect(() => known.state.subscribe((s) => setNames((s.data ?? []).map((k) => k.name))), []);
  useEffect(() => {
    if (!text.trim()) return setFound({ text });
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api.post<Parsed>("/servers/parse", { text }, { signal: abort.signal }).then(
        (parsed) => setFound({ text, parsed }),
        (error) => abort.signal.aborted || setFound({ text, error }),
      );
    }, pause);
    return () => (clearTimeout(timer), abort.abort());
  }, [text]);

  const servers = useMemo(() => {
    const before: string[] = [];
    return (found.parsed?.servers ?? []).map((server, i): Pasted => {
      const key = `${i} ${server.name}`;
      const choice = choices[key] ?? {};
      const name = choice.name ?? server.name;
      const trouble = choice.skip ? "" : nameTrouble(name, [...names, ...before, ...(server.exists && !choice.name ? [server.name] : [])]);
      if (!choice.skip) before.push(name);
      return { server, name, choice, trouble, choose: (patch) => setChoices((all) => ({ ...all, [key]: { ...all[key], ...patch } })) };
    });
  }, [found, choices, names]);

  const busy = found.text !== text;
  const ready = busy ? [] : servers.filter((s) => !s.choice.skip && !s.trouble);
  return {
    text, busy, servers, count: ready.length,
    setText: (t) => {
      set(t);
      if (!t.trim()) setChoices({});
    },
    ...(found.parsed ? { parsed: found.parsed } : {}),
    ...(found.error === undefined ? {} : { error: found.error }),
    add: async () => {
      const out: Added[] = [];
      for (const s of ready) {
        try {
          await api.post("/servers", bodyOf(s.server, s.choice));
          out.push({ name: s.name });
        } catch (error) {
          out.push({ name: s.name, error: explain(error) });
        }
      }
      known.reload();
      return out;
    },
  };
}
