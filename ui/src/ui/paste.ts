// The state of a pasted text with servers, parsed while the user types.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, explain, OfflineError, path } from "../api/client";
import type { AddedServers, Parsed, ParsedServer, SecretView } from "../api/types";
import { useResource } from "../data/resource";
import { servers as known } from "../data/shared";
import { bodyOf, keep, nameTrouble, type Choice, type Kept } from "../lib/paste";

/** A parsed server. trouble: why it cannot be added; failed: why adding failed; kept: its secrets that go into the keyring. */
export interface Pasted { server: ParsedServer; name: string; choice: Choice; kept: ReadonlyMap<string, Kept>; trouble: string; failed: string; choose: (patch: Choice) => void }
/** The result of adding a server. */
export interface Added { name: string; error?: { message: string; hint: string } }

export interface Paste {
  text: string;
  setText: (text: string) => void;
  parsed?: Parsed;
  /** The text is being parsed. */
  busy: boolean;
  error?: unknown;
  servers: readonly Pasted[];
  /** The number of servers to add; 0 while the text is being parsed. */
  count: number;
  /** Adds them; it never throws: failed ones have an error. Added ones are skipped the next time. */
  add: () => Promise<Added[]>;
}

const pause = 150;

/** Returns the state of a box to paste servers into; <ParseBox of={…}> draws it. */
export function usePaste(): Paste {
  const [text, set] = useState("");
  const [found, setFound] = useState<{ text: string; parsed?: Parsed; error?: unknown }>({ text: "" });
  const [choices, setChoices] = useState<Record<string, Choice>>({});
  const [failed, setFailed] = useState<Record<string, string>>({});
  const [names, setNames] = useState<readonly string[]>([]);
  const some = found.parsed?.servers.some((s) => s.secrets.length > 0) ?? false;
  const secrets = useResource(some ? "secrets" : null, takenNames, { turn: found.text });
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
    const taken = new Map(secrets.data);
    return (found.parsed?.servers ?? []).map((server, i): Pasted => {
      const key = keyOf(server, i);
      const choice = choices[key] ?? {};
      const name = choice.name ?? server.name;
      const trouble = choice.skip ? "" : nameTrouble(name, [...names, ...before, ...(server.exists && !choice.name ? [server.name] : [])]);
      if (!choice.skip) before.push(name);
      const kept = choice.skip ? new Map<string, Kept>() : keep(server, choice, taken);
      return { server, name, choice, kept, trouble, failed: failed[key] ?? "", choose: (patch) => setChoices((all) => ({ ...all, [key]: { ...all[key], ...patch } })) };
    });
  }, [found, choices, failed, names, secrets.data]);

  const busy = found.text !== text || (some && secrets.data === undefined && secrets.error === undefined);
  const ready = busy ? [] : servers.filter((s) => !s.choice.skip && !s.trouble);
  return {
    text, busy, servers, count: ready.length,
    setText: (t) => {
      set(t);
      setFailed({});
      if (!t.trim()) setChoices({});
    },
    ...(found.parsed ? { parsed: found.parsed } : {}),
    ...(found.error === undefined ? {} : { error: found.error }),
    add: async () => {
      let taken: Taken;
      try {
        taken = ready.some((s) => s.kept.size > 0) ? await takenNames() : new Map();
      } catch (error) {
        return ready.map((s) => ({ name: s.name, error: explain(error) }));
      }
      // Choose the names again, since another user may have taken one in the meantime.
      const planned = ready.map((s) => ({ ...s, kept: keep(s.server, s.choice, taken) }));
      setFailed({});
      const added = await addAll(planned);
      planned.forEach((p, i) => {
        const error = added[i]!.error;
        const key = keyOf(p.server, servers.findIndex((is) => is.server === p.server));
        if (error) setFailed((all) => ({ ...all, [key]: [error.message, error.hint].filter(Boolean).join(" ") }));
        else p.choose({ skip: true, done: true });
      });
      known.reload();
      return added;
    },
  };
}

const keyOf = (s: ParsedServer, i: number) => `${i} ${s.name}`;

type Taken = Map<string, string | undefined>;

// The names in use, also of missing secrets: a value never overwrites another one, nor reaches another server.
async function takenNames(signal?: AbortSignal): Promise<Taken> {
  const { secrets } = await api.get<{ secrets: SecretView[] }>("/secrets", undefined, signal);
  return new Map(secrets.map((s) => [s.name, undefined]));
}

// First the secrets, then all servers in one request, which needs one signature. The
// secrets of servers that were not added are deleted.
async function addAll(all: readonly Pasted[]): Promise<Added[]> {
  const out: Added[] = all.map(({ name }) => ({ name }));
  const stored = all.map((): string[] => []);
  await Promise.all(all.map(async (s, i) => {
    try {
      for (const k of s.kept.values()) {
        await api.put(path`/secrets/${k.name}`, { value: k.value });
        stored[i]!.push(k.name);
      }
    } catch (error) {
      out[i]!.error = explain(error);
    }
  }));
  const ready = all.flatMap((s, i) => (out[i]!.error ? [] : [{ ...s, i }]));
  try {
    const { results } = ready.length
      ? await api.post<AddedServers>("/servers/add", { servers: ready.map((s) => bodyOf(s.server, s.choice, s.kept)) })
      : { results: [] };
    results.forEach(({ problem: p }, n) => p && (out[ready[n]!.i]!.error = { message: p.detail, hint: p.hint ?? "" }));
  } catch (error) {
    for (const { i } of ready) out[i]!.error = explain(error);
    if (error instanceof OfflineError) return out; // perhaps they were added, and need their secrets
  }
  const needed = new Set(stored.flatMap((names, i) => (out[i]!.error ? [] : names)));
  const left = stored.flat().filter((name) => !needed.has(name));
  await Promise.all([...new Set(left)].map((name) => api.delete(path`/secrets/${name}`).catch(() => {})));
  return out;
}
