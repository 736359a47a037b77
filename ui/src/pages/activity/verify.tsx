// The verification of the hash chain: by Verify, or the last known result.

import { signal } from "@preact/signals";
import { api } from "../../api/client";
import type { ActivityRecord, VerifyAnswer } from "../../api/types";
import { useStatus } from "../../data/shared";
import { count, duration } from "../../lib/format";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { DrawerPart } from "../../ui/drawer";
import { Icon } from "../../ui/icon";
import { attempt } from "../../ui/toast";
import { Time } from "../../ui/values";

/** The result of the last verification on this page. */
export const verification = signal<VerifyAnswer | undefined>(undefined);

const whole = "Unchanged since it was written.";

function Break({ answer }: { answer: VerifyAnswer }) {
  const at = answer.first_break;
  if (!at) return <>Verification failed: a record was changed or removed.</>;
  return <>Verification failed at {at.id ? <a class="link mono" href={href("activity", { since: "30d", id: at.id })}>{at.id}</a> : `entry ${at.seq}`}: an earlier record was changed or removed. <span class="dim">{at.reason}</span></>;
}

/** The result line below the heading, after Verify. */
export function Verified() {
  const v = verification.value;
  return (
    <div role="status">
      {v && (
        <p class={v.ok ? "chain verified" : "chain verified bad"}>
          <Icon name={v.ok ? "shield-ok" : "err"} small />
          <span>{v.ok ? <>{whole} <span class="dim">{count(v.records, "record")} verified in {duration(Math.max(v.took_ms, 1))}.</span></> : <Break answer={v} />}</span>
          <Button kind="quiet" small icon="close" label="Close" onClick={() => (verification.value = undefined)} />
        </p>
      )}
    </div>
  );
}

function Hash({ text }: { text: string }) {
  return <span class="mono dim" title={text}>{text ? text.slice(0, 8) + "…" : "none"}</span>;
}

/** The position of a record in the hash chain, in the drawer. */
export function Proof({ record: r }: { record: ActivityRecord }) {
  const status = useStatus();
  const c = r.chain;
  if (!c) return null;
  const v = verification.value;
  const last = v ?? status.data?.activity.verified;
  const looked = !!last && last.at > (r.last_time ?? r.timestamp); // RFC 3339 in UTC: text order is that of time, but for the fraction
  const verify = () => attempt(async () => (verification.value = await api.get<VerifyAnswer>("/activity/verify")));
  const broken = looked && !last.ok;
  return (
    <DrawerPart title="Integrity" end={<CopyButton label="Copy hashes" text={() => JSON.stringify(c, null, 2)} />}>
      <p class={broken ? "chain bad" : looked ? "chain" : "chain open"}>
        <Icon name={broken ? "err" : looked ? "shield-ok" : "shield"} small />
        {broken ? <span>{v ? <Break answer={v} /> : "Verification failed. Select Verify for details."}</span> : looked ? <span>{whole} <span class="dim">Verified <Time at={last.at} suffix /></span></span> : <span>Not verified yet.</span>}
        {!looked && <Button small onClick={verify}>Verify</Button>}
      </p>
      <p class="chain-at">Entry {c.seq}{c.end_seq ? ` to ${c.end_seq}` : ""}: <Hash text={c.hash} /> after <Hash text={c.previous} />{c.end_hash && <>, ended by <Hash text={c.end_hash} /></>}</p>
    </DrawerPart>
  );
}
