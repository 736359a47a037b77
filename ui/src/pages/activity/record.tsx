// The drawer of one record.

import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { path } from "../../api/client";
import type { ActivityRecord, ErasedField } from "../../api/types";
import { useResource } from "../../data/resource";
import { useActions } from "../../keys";
import { bytes, clock, date, duration, millis, number } from "../../lib/format";
import { own } from "../../lib/own";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { copy, CopyButton } from "../../ui/copy";
import { Drawer, DrawerPart } from "../../ui/drawer";
import { Seg } from "../../ui/field";
import { Json, JsonPart, Text } from "../../ui/json";
import { Lane, Outcome, ToolName } from "../../ui/marks";
import { Loaded } from "../../ui/parts";
import { toast } from "../../ui/toast";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { again, answerText, command, maskedIn } from "./command";
import { DecisionPart } from "./decided";
import { actionWords, isCall, ofRecord, type Row } from "./row";
import { TimePart } from "./timing";
import { Proof } from "./verify";
import { Change, Why } from "./why";

const outcome: Record<ActivityRecord["status"], string> = { success: "Succeeded", error: "Failed", blocked: "Refused", interrupted: "Interrupted", pending: "Running", held: "Held" };

function when(at: string): string {
  const t = new Date(at);
  const now = new Date();
  return `${t.toDateString() === now.toDateString() ? "today" : date(t, now)} at ${clock(t, true)}${millis(t)}`;
}

/** Returns the line below the title: "Succeeded in 212 ms, today at 15:01:58.318". */
function meta(r: Row): string {
  if (!isCall(r)) return `${actionWords(r.action ?? r.type)}, ${when(r.at)}`.replace(/^./, (c) => c.toUpperCase());
  const took = r.type === "tool_call" && r.status !== "pending" && r.status !== "held" ? ` ${r.status === "success" ? "in" : "after"} ${r.ms ? duration(r.ms) : "less than 1 ms"}` : "";
  return `${outcome[r.status]}${took}, ${when(r.at)}` + ((r.times ?? 0) > 1 ? `, ${number(r.times!)} times` : "");
}

export function RecordDrawer({ id, row, onMove, onSession, onClose }: {
  id: string;
  /** The row in the list, shown until the record has loaded. */
  row: Row | undefined;
  onMove: (by: number) => void;
  onSession: (session: string) => void;
  onClose: () => void;
}) {
  // A running call is reloaded when it ends.
  const record = useResource(`record ${id} ${row?.status === "pending"}`, (signal) => api.get<ActivityRecord>(path`/activity/${id}`, {}, signal), { keep: false });
  const link = () => void copy(new URL(href("activity", { since: "30d", id }), location.href).href).then((done) => done && toast({ text: "Link copied." }));
  useActions([{ key: "c", label: "Copy link to record", icon: "copy", run: link }]);
  const r = record.data;
  const shown = r ? ofRecord(r) : row;
  const title = shown && (shown.server || shown.tool) ? <ToolName server={shown.server} tool={shown.tool} /> : shown?.type === "config_change" ? "configuration" : shown ? "MCPProxy" : id;
  return (
    <Drawer label={`Record ${id}`} above={shown && (shown.lane ? <Lane lane={shown.lane} /> : isCall(shown) ? <Outcome status={shown.status} /> : <span class="soft">{{ approval: "Approval", server_change: "Server change", config_change: "Configuration change", presence: "Presence", system: "System" }[shown.type as "system"]}</span>)}
      title={title} meta={shown && meta(shown)} onMove={onMove} onClose={onClose}
      acts={<Button kind="quiet" small large icon="copy" label="Copy link to record" onClick={link} />} footer={r && isCall(r) && <Actions record={r} onSession={onSession} />}>
      <Loaded of={record} title="Could not load the record">{(r) => <Body record={r} key={r.id} />}</Loaded>
    </Drawer>
  );
}

function Body({ record: r }: { record: ActivityRecord }) {
  const call = isCall(r);
  const refused = r.status === "blocked" && call;
  return (
    <>
      {refused && <DecisionPart record={r} />}
      {call ? <Why record={r} /> : <Change record={r} />}
      {r.arguments !== undefined && <Arguments record={r} />}
      {r.erased && <ErasedPart erased={r.erased} />}
      {r.response !== undefined && <Answer record={r} />}
      {!refused && r.error_message && r.error_message !== answerText(r.response) && <DrawerPart title={r.metadata.error_code ? `Error ${r.metadata.error_code}` : "Error"}><p><Visible text={r.error_message} /></p></DrawerPart>}
      {!!r.metadata.warnings?.length && <DrawerPart title="Warnings"><ul class="told">{r.metadata.warnings.map((w) => <li key={w}><Visible text={w} /></li>)}</ul></DrawerPart>}
      {!refused && call && <DecisionPart record={r} />}
      {call && <TimePart record={r} />}
      <Proof record={r} />
    </>
  );
}

const fieldWords: Record<ErasedField, string> = { arguments: "Arguments", response: "Result", error_message: "Error", reason: "Reason", declared: "Declared intent", query: "Search", warnings: "Warnings" };

// The fields that a user erased.
function ErasedPart({ erased }: { erased: NonNullable<ActivityRecord["erased"]> }) {
  return (
    <DrawerPart title="Erased by a user">
      <dl class="defs">{erased.map((e) => <><dt key={e.field}>{own(fieldWords, e.field) ?? e.field}</dt><dd><span class="masked">erased</span> <Time class="dim" at={e.at} suffix /></dd></>)}</dl>
    </DrawerPart>
  );
}

function Arguments({ record: r }: { record: ActivityRecord }) {
  const masked = maskedIn(r.arguments);
  const note = r.arguments_truncated && `Truncated. Full size: ${bytes(r.request_bytes)}.`;
  return <JsonPart title="Arguments" value={r.arguments} end={masked > 0 && <span class="dim">{masked} masked</span>} {...(note ? { note } : {})} />;
}

function Answer({ record: r }: { record: ActivityRecord }) {
  const [as, setAs] = useState<"text" | "json">("text");
  const text = answerText(r.response);
  const json = text === undefined || as === "json";
  const note = r.response_truncated && `Truncated. Full size: ${bytes(r.response_bytes)}.`;
  return (
    <DrawerPart title="Result" end={<>
      {text !== undefined && <Seg tiny label="Result format" value={as} onChange={setAs} options={[{ value: "text", label: "Text" }, { value: "json", label: "JSON" }]} />}
      <CopyButton label="Copy result" text={() => (json ? JSON.stringify(r.response, null, 2) : text!)} />
    </>}>
      {json ? <Json value={r.response} label="result" note={note} /> : <><Text text={text} label="result" />{note && <p class="same">{note}</p>}</>}
    </DrawerPart>
  );
}

function Actions({ record: r, onSession }: { record: ActivityRecord; onSession: (session: string) => void }) {
  const line = command(r);
  const params = again(r);
  return (
    <>
      {params && <Button small href={href("tools", params)}>Call again…</Button>}
      {line && <Button small onClick={() => void copy(line).then((done) => done && toast({ text: maskedIn(r.arguments) ? "Command copied. Replace the masked values before you run it." : "Command copied." }))}>Copy as command</Button>}
      {r.session_id && <Button small kind="quiet" class="hide-small" onClick={() => onSession(r.session_id!)}>View session</Button>}
    </>
  );
}
