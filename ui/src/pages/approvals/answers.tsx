// The answers to a held call: approve once, deny, or grant a lease.

import { useState } from "preact/hooks";
import { api, explain, path, ProblemError } from "../../api/client";
import type { Lane, PendingCall, TokenView } from "../../api/types";
import { useResource } from "../../data/resource";
import { number } from "../../lib/format";
import { Confirm } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { attempt, tell, toast } from "../../ui/toast";
import { Visible } from "../../ui/words";
import { ActsBar, useSettled } from "./acts";
import { bodyOf, covers, lanesFor, lives, mostCalls, offered, tokenOf, type Lease } from "./lease";

interface Props {
  call: PendingCall;
  /** The answer was accepted: the next item opens. */
  onDone: () => void;
  onNext?: () => void;
  /** Another user answered first, or the call expired. */
  onStale: () => void;
}

export function Answers({ call: c, onDone, onNext, onStale }: Props) {
  const [asking, setAsking] = useState<"" | "deny" | "lease">("");
  const [busy, setBusy] = useState(false);
  const settled = useSettled(c.id, false);
  const answer = async (what: () => Promise<string>) => {
    setBusy(true);
    try {
      toast({ text: await what() });
      onDone();
    } catch (error) {
      if (!(error instanceof ProblemError && error.status === 409)) throw error;
      tell(error);
      onStale();
    } finally {
      setBusy(false);
    }
  };
  const approve = () => api.post(path`/pending/${c.id}/approve`);
  const once = () => answer(async () => (await approve(), `Approved ${c.name} once.`));
  const deny = (reason: string) => answer(async () => (await api.post(path`/pending/${c.id}/deny`, { reason }), `Denied ${c.name}.`));
  // Approve the call first, so that the lease does not count it.
  const lease = (l: Lease) => answer(async () => {
    await approve();
    try {
      await api.post("/leases", bodyOf(l));
    } catch (error) {
      return `Approved ${c.name} once, but could not grant the lease: ${explain(error).message}`;
    }
    return `Approved ${c.name}, and ${covers(l)}`;
  });
  return (
    <>
      <ActsBar ready={settled && !busy} hold={busy} onNext={onNext} note={<>Applies to this exact call, once.<br />Any other call needs its own approval.</>}
        acts={[
          { key: "a", label: "Approve once", kind: "main", run: () => void attempt(once) },
          { key: "x", label: "Deny…", run: () => setAsking("deny") },
          { key: "w", label: "Grant lease…", run: () => setAsking("lease") },
        ]} />
      {asking === "deny" && <Deny call={c} onDeny={deny} onClose={() => setAsking("")} />}
      {asking === "lease" && <GrantLease call={c} onGrant={lease} onClose={() => setAsking("")} />}
    </>
  );
}

function Deny({ call: c, onDeny, onClose }: { call: PendingCall; onDeny: (reason: string) => Promise<void>; onClose: () => void }) {
  const [reason, setReason] = useState("");
  return (
    <Confirm title={`Deny ${c.name}?`} action="Deny" danger={false} onConfirm={() => onDeny(reason.trim())} onClose={onClose}>
      <Field label="Reason" note="The agent sees this reason. The same call is denied for 15 minutes.">
        {(a) => <textarea {...a} rows={3} maxLength={2000} value={reason} placeholder="Not on a Friday." onInput={(e) => setReason(e.currentTarget.value)} />}
      </Field>
    </Confirm>
  );
}

function GrantLease({ call: c, onGrant, onClose }: { call: PendingCall; onGrant: (l: Lease) => Promise<void>; onClose: () => void }) {
  const [l, set] = useState(offered(c));
  const tokens = useResource("tokens", (signal) => api.get<{ tokens: TokenView[] }>("/tokens", undefined, signal));
  const own = tokenOf(c);
  const names = new Set([...(own ? [own] : []), ...(tokens.data?.tokens ?? []).filter((t) => !t.expired).map((t) => t.name)]);
  const good = Number.isInteger(l.calls) && l.calls >= 1 && l.calls <= mostCalls;
  const put = (part: Partial<Lease>) => set({ ...l, ...part });
  return (
    <Confirm title={`Grant a lease for ${c.name}?`} action="Grant lease" danger={false} ready={good} onConfirm={() => onGrant(l)} onClose={onClose}>
      <div class="dlg-form">
        <Field label="Tools">{(a) => <select {...a} value={l.tools} onChange={(e) => put({ tools: e.currentTarget.value })}><option value={c.tool}>only {c.tool}</option><option value="">all tools on {c.server}</option></select>}</Field>
        <Field label="Lane" note="The highest lane that the lease covers.">{(a) => <select {...a} value={l.lane} onChange={(e) => put({ lane: e.currentTarget.value as Lane })}>{lanesFor(c).map((lane) => <option key={lane} value={lane}>{lane}</option>)}</select>}</Field>
        <Field label="Duration">{(a) => <select {...a} value={l.life} onChange={(e) => put({ life: e.currentTarget.value })}>{lives.map(([value, word]) => <option key={value} value={value}>{word}</option>)}</select>}</Field>
        <Field label="Calls" {...(good ? {} : { error: `Enter a number from 1 to ${number(mostCalls)}.` })}>
          {(a) => <input {...a} type="number" min={1} max={mostCalls} value={Number.isNaN(l.calls) ? "" : l.calls} onInput={(e) => put({ calls: e.currentTarget.valueAsNumber })} />}
        </Field>
        <Field label="Token" note={own ? undefined : "This call has no token. Client names are not verified."}>
          {(a) => <select {...a} value={l.client} onChange={(e) => put({ client: e.currentTarget.value })}><option value="">any client</option>{[...names].map((n) => <option key={n} value={n}>{n}</option>)}</select>}
        </Field>
        {good && <p>Approves this call, and <Visible text={covers(l)} /></p>}
      </div>
    </Confirm>
  );
}
