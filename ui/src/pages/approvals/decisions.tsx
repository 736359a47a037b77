// What can be decided about a definition, and what becomes of it.

import { useState } from "preact/hooks";
import { ProblemError } from "../../api/client";
import { Confirm } from "../../ui/dialog";
import { tell, toast } from "../../ui/toast";
import { ActsBar, useSettled, type Act } from "./acts";
import type { Lanes } from "./body";
import { decide, type Diff, type Target, type Verb } from "./decide";

export interface Outcome {
  /** The decision holds: the next one opens. */
  onDone: () => void;
  /** It was taken back: it opens again. */
  onBack: () => void;
  onNext?: () => void;
}

interface Props extends Outcome {
  target: Target;
  diff: Diff;
  lanes: Lanes;
  /** How often it has become another one while it was looked at. */
  changed: number;
  /** What is shown is not what is there any more. */
  onStale: () => void;
}

/** The bar of decisions: the verdict says which one is the primary. */
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
      // Another definition by now: what it says is shown, and decided about anew.
      if (error instanceof ProblemError && error.status === 409) onStale();
      throw error;
    } finally {
      setBusy(false);
    }
    const undo = () => decide(target, options.undo!, diff.fingerprint).then(() => {
      onBack();
      if (options.keep) toast({ text: `${label} waits again. The configuration still counts it as destructive.` });
    });
    toast({ text: done, ...(options.undo ? { undo } : {}) });
    if (verb === "unblock") onBack(); // it waits: there is something to decide
    else onDone();
  };
  const quietly = (...a: Parameters<typeof act>) => void act(...a).catch(tell);
  const approve = () => quietly("approve", `Approved ${label}.`, { undo: "withdraw" });
  const anyway = () => setAsking(true);
  const block: Act = { key: "x", label: "Block", run: () => quietly("block", `Blocked ${label}. No agent can use it.`, diff.reason ? { undo: "unblock" } : {}) };
  const unblock: Act = { key: "x", label: "Unblock", run: () => quietly("unblock", `${label} waits for your review again.`) };
  const poisoned = diff.verdict === "block";
  const destructive = lanes.was === "destructive";

  const acts: Act[] = [];
  if (!diff.reason) {
    acts.push({ key: "u", label: "Take the approval back", run: () => quietly("withdraw", `${label} waits again.`) }, block);
  } else if (poisoned) {
    acts.push(diff.reason === "blocked" ? unblock : { ...block, label: "Block this definition", kind: "danger", icon: "block" });
    acts.push({ key: "a", label: "Approve anyway…", run: anyway });
  } else if (diff.loosened?.length && target.kind === "tool") {
    const keep = () => quietly("approve", `Approved ${label}; it counts as destructive.`, { keep: true, undo: "withdraw" });
    const lane = lanes.was !== lanes.is || destructive;
    if (lane) acts.push({ key: "K", label: destructive ? "Approve, keep it destructive" : "Approve, count it as destructive", kind: "main", run: keep });
    acts.push({ key: "a", label: "Approve as it says", ...(lane ? {} : { kind: "main" as const }), run: approve });
    acts.push(diff.reason === "blocked" ? unblock : block);
  } else {
    acts.push({ key: "a", label: "Approve", kind: "main", run: approve });
    acts.push(diff.reason === "blocked" ? unblock : block);
  }
  return (
    <>
      <ActsBar acts={acts} ready={settled && !busy} hold={busy || (changed > 0 && !settled)} onNext={onNext} note={<>For exactly this fingerprint.<br />The next change waits again.</>} />
      {asking && (
        <Confirm title={`Approve ${label} although it looks poisoned?`} action="Approve" name={target.name || target.server} nameLabel={`Type its name to approve it`}
          onConfirm={() => act("approve", `Approved ${label} in spite of its findings.`, { undo: "withdraw" })} onClose={() => setAsking(false)}>
          Agents will read what is marked, as it stands. Approve it only when you know why it says so.
        </Confirm>
      )}
    </>
  );
}
