// The decisions about a definition, and their outcome.

import { useState } from "preact/hooks";
import { ProblemError } from "../../api/client";
import { Confirm } from "../../ui/dialog";
import { tell, toast } from "../../ui/toast";
import { ActsBar, useSettled, type Act } from "./acts";
import type { Lanes } from "./body";
import { decide, type Diff, type Target, type Verb } from "./decide";

export interface Outcome {
  /** The decision was accepted: the next item opens. */
  onDone: () => void;
  /** The decision was undone: the item opens again. */
  onBack: () => void;
  onNext?: () => void;
}

interface Props extends Outcome {
  target: Target;
  diff: Diff;
  lanes: Lanes;
  /** How often the definition changed while it was shown. */
  changed: number;
  /** The definition is no longer the one that is shown. */
  onStale: () => void;
}

/** The action bar; the verdict selects the primary action. */
export function Decisions({ target, diff, lanes, changed, onDone, onBack, onNext, onStale }: Props) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const settled = useSettled(diff.fingerprint, changed > 0);
  const label = target.name ? `${target.server}:${target.name}` : `the ${target.kind} of ${target.server}`;

  const act = async (verb: Verb, done: string, options: { keep?: boolean; undo?: "withdraw" | "unblock" } = {}) => {
    setBusy(true);
    try {
      await decide(target, verb, diff.fingerprint, options.keep);
    } catch (error) {
      // The definition has changed since then: show the new one.
      if (error instanceof ProblemError && error.status === 409) onStale();
      throw error;
    } finally {
      setBusy(false);
    }
    const undo = () => decide(target, options.undo!, diff.fingerprint).then(() => {
      onBack();
      if (options.keep) toast({ text: `${label} needs review again. The configuration still marks it destructive.` });
    });
    toast({ text: done, ...(options.undo ? { undo } : {}) });
    if (verb === "unblock") onBack(); // it needs review again
    else onDone();
  };
  const quietly = (...a: Parameters<typeof act>) => void act(...a).catch(tell);
  const approve = () => quietly("approve", `Approved ${label}.`, { undo: "withdraw" });
  const anyway = () => setAsking(true);
  const block: Act = { key: "x", label: "Block", run: () => quietly("block", `Blocked ${label}. Agents cannot use it.`, diff.reason ? { undo: "unblock" } : {}) };
  const unblock: Act = { key: "x", label: "Unblock", run: () => quietly("unblock", `Unblocked ${label}. It needs review again.`) };
  const poisoned = diff.verdict === "block";
  const destructive = lanes.was === "destructive";

  const acts: Act[] = [];
  if (!diff.reason) {
    acts.push({ key: "u", label: "Revoke approval", run: () => quietly("withdraw", `Revoked the approval of ${label}. It needs review again.`) }, block);
  } else if (poisoned) {
    acts.push(diff.reason === "blocked" ? unblock : { ...block, label: "Block definition", kind: "danger", icon: "block" });
    acts.push({ key: "a", label: "Approve anyway…", run: anyway });
  } else if (diff.loosened?.length && target.kind === "tool") {
    const keep = () => quietly("approve", `Approved ${label} and marked it destructive.`, { keep: true, undo: "withdraw" });
    const lane = lanes.was !== lanes.is || destructive;
    if (lane) acts.push({ key: "K", label: destructive ? "Approve, keep destructive" : "Approve as destructive", kind: "main", run: keep });
    acts.push({ key: "a", label: "Approve as declared", ...(lane ? {} : { kind: "main" as const }), run: approve });
    acts.push(diff.reason === "blocked" ? unblock : block);
  } else {
    acts.push({ key: "a", label: "Approve", kind: "main", run: approve });
    acts.push(diff.reason === "blocked" ? unblock : block);
  }
  return (
    <>
      <ActsBar acts={acts} ready={settled && !busy} hold={busy || (changed > 0 && !settled)} onNext={onNext} note={<>Applies to this fingerprint.<br />Later changes need a new review.</>} />
      {asking && (
        <Confirm title={`Approve ${label} despite its findings?`} action="Approve" name={target.name || target.server} nameLabel="Type the name to confirm"
          onConfirm={() => act("approve", `Approved ${label} despite its findings.`, { undo: "withdraw" })} onClose={() => setAsking(false)}>
          Agents will read the marked text. Approve it only if you know why it is there.
        </Confirm>
      )}
    </>
  );
}
