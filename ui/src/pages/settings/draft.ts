// Unsaved changes. They outlive the page, and MCPProxy validates them after each change.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { api, ProblemError } from "../../api/client";
import { signedIn } from "../../api/session";
import type { Config, Mistake, Setting, Validation } from "../../api/types";
import type { Resource } from "../../data/resource";
import { attempt, toast } from "../../ui/toast";
import { withSetting, withText, type Draft } from "./model";

const draft = signal<Draft | undefined>(undefined);
// The text may contain a secret: it is dropped at sign-out.
signedIn.subscribe((s) => !s && (draft.value = undefined));

const pause = 200; // ms without typing before a draft is checked

// whatever: also if the file changed since the draft began.
function check(d: Draft, abort?: AbortSignal, whatever = false): Promise<Validation> {
  const body = { text: d.text ?? d.base.text, ...(Object.keys(d.set).length ? { set: d.set } : {}) };
  return api.post<Validation>("/config/validate", body, { ...(whatever ? {} : { ifMatch: d.base.etag }), ...(abort ? { signal: abort } : {}) });
}

/** Returns the text of a draft, given its validation. */
const textOf = (d: Draft, v: Validation) => v.text ?? d.text ?? d.base.text;

export interface Drafting {
  draft: Draft | undefined;
  /** The file with the draft applied. */
  text: string;
  /** The last validation of the draft; of an older version while busy. */
  validation: Validation | undefined;
  mistakes: readonly Mistake[];
  /** The draft is being validated. */
  busy: boolean;
  /** Why it cannot be validated. */
  error: unknown;
  /** The file changed since the draft began. */
  conflict: boolean;
  saving: boolean;
  change: (s: Setting, value: unknown) => void;
  edit: (text: string) => void;
  /** Applies the draft to the current file. */
  rebase: (text?: string) => void;
  discard: () => void;
  save: () => Promise<void>;
}

export function useDraft(of: Resource<Config>, file: Config): Drafting {
  const d = draft.value;
  const conflict = !!d && d.base.etag !== file.etag;
  const [answer, setAnswer] = useState<{ of: Draft; said?: Validation; text: string; error?: unknown }>();
  const [saving, setSaving] = useState(false);
  const known = d && answer && answer.of.base === d.base ? answer : undefined;
  const fresh = !!d && known?.of === d;

  useEffect(() => {
    if (!d || (conflict && fresh)) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      check(d, abort.signal, conflict).then(
        (said) => !abort.signal.aborted && setAnswer({ of: d, said, text: textOf(d, said) }),
        (error) => {
          if (abort.signal.aborted) return;
          // The file has changed since then: reload it to show the conflict.
          if (error instanceof ProblemError && error.status === 409) return of.reload();
          setAnswer((a) => ({ ...(a ?? { text: d.text ?? d.base.text }), of: d, error }));
        },
      );
    }, pause);
    return () => (clearTimeout(timer), abort.abort());
  }, [d, conflict]);
  useEffect(() => {
    if (!d) return;
    const ask = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [!d]);

  const text = !d ? file.text : Object.keys(d.set).length === 0 ? (d.text ?? d.base.text) : (known?.text ?? d.text ?? d.base.text);
  const validation = known?.said;
  const save = async () => {
    if (!d || conflict || saving) return;
    setSaving(true);
    await attempt(() => put(d, file, of).then((said) => said && setAnswer({ of: d, said, text: textOf(d, said) })));
    setSaving(false);
  };
  return {
    draft: d, text, validation, conflict, saving, save,
    mistakes: d ? (validation?.mistakes ?? []) : (file.mistakes ?? []),
    busy: !!d && !conflict && !fresh, error: fresh ? known?.error : undefined,
    change: (s, value) => (draft.value = withSetting(file, d, s, value)),
    edit: (next) => (draft.value = withText(file, d, next, fresh || Object.keys(d?.set ?? {}).length === 0)),
    rebase: (next) => (draft.value = next === undefined ? (d && { ...d, base: file }) : withText(file, undefined, next, true)),
    discard: () => (draft.value = undefined),
  };
}

// put saves a draft; changes of the form as keys only. It returns the validation
// if the draft cannot be saved.
async function put(d: Draft, file: Config, of: Resource<Config>): Promise<Validation | undefined> {
  const said = await check(d).catch((error: unknown) => {
    if (error instanceof ProblemError && error.status === 409) of.reload();
    throw error;
  });
  if (!said.ok) return said;
  const o = { ifMatch: d.base.etag };
  try {
    const saved = await (d.text === undefined ? api.patch<Config>("/config", { set: d.set }, o) : api.put<Config>("/config", { text: textOf(d, said) }, o));
    draft.value = undefined;
    of.set(saved);
    const waits = said.needs_restart;
    toast({
      text: waits.length > 0 ? `Saved. Restart MCPProxy to apply ${waits.join(", ")}.` : "Saved and applied.",
      undo: async () => of.set(await api.put<Config>("/config", { text: file.text }, { ifMatch: saved.etag })),
    });
    return undefined;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    if (error.status === 409) of.reload();
    const mistakes = error.problem.details?.mistakes as Mistake[] | undefined;
    if (!mistakes) throw error;
    return { ...said, ok: false, mistakes };
  }
}
