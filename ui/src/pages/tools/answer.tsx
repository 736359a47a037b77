import { useState } from "preact/hooks";
import { explain, ProblemError } from "../../api/client";
import type { CallAnswer } from "../../api/types";
import { usePending } from "../../data/shared";
import { bytes } from "../../lib/format";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { DrawerPart } from "../../ui/drawer";
import { Seg } from "../../ui/field";
import { Json, Text } from "../../ui/json";
import { Outcome as How } from "../../ui/marks";
import { Visible } from "../../ui/words";

export type Outcome = { kind: "running" } | { kind: "answer"; answer: CallAnswer } | { kind: "error"; error: unknown };

/** The result of a call: the answer, or the error. */
export function Answer({ name, outcome, onAgain }: { /** Of the tool. */ name: string; outcome: Outcome; onAgain: () => void }) {
  if (outcome.kind === "running") return <div class="answer" role="status"><DrawerPart title="Result"><How status="pending" /><Held name={name} /></DrawerPart></div>;
  return <div class="answer" role="status">{outcome.kind === "answer" ? <Given answer={outcome.answer} /> : <Refused error={outcome.error} onAgain={onAgain} />}</div>;
}

// Calls from this page can need approval, too.
function Held({ name }: { name: string }) {
  const c = usePending().data?.find((p) => p.source === "ui" && p.name === name);
  return c ? <> <span class="soft">The call needs approval.</span> <a class="link" href={href("approvals", { kind: "call", id: c.id })}>Review</a></> : null;
}

function Given({ answer }: { answer: CallAnswer }) {
  const [tab, setTab] = useState<"text" | "json">("text");
  const text = textOf(answer.result);
  return (
    <DrawerPart title="Result" end={<><Record id={answer.activity_id} /><Seg tiny label="Result format" value={tab} onChange={setTab} options={[{ value: "text", label: "Text" }, { value: "json", label: "JSON" }]} /></>}>
      {answer.is_error && <p class="gap-below"><How status="error" /> <span class="soft">The tool reported an error.</span></p>}
      {answer.warnings.map((w, i) => <p class="warned" key={i}><Visible text={w} /></p>)}
      {tab === "json" ? <Json value={answer.result} label="Result as JSON" wrap /> : text ? <Text text={text} label="Result" /> : <p class="dim">The result is empty.</p>}
      {answer.handle && <p class="same">Truncated. Agents get the rest with <code>read_result</code>.</p>}
    </DrawerPart>
  );
}

// The text parts; without any, the structured content as JSON. Images and files are only named.
function textOf(result: CallAnswer["result"]): string {
  const parts = (result.content ?? []).map((c) => {
    const part = c as { type?: string; text?: string; mimeType?: string; data?: string; uri?: string; resource?: { uri?: string; text?: string } };
    if (part.type === "text") return part.text ?? "";
    if (part.type === "resource" && part.resource?.text) return part.resource.text;
    const size = typeof part.data === "string" ? bytes(Math.floor((part.data.length * 3) / 4)) : "";
    return `[${[part.type ?? "part", part.mimeType, part.uri ?? part.resource?.uri, size].filter(Boolean).join(", ")}]`;
  });
  if (parts.length === 0 && result.structuredContent !== undefined) return JSON.stringify(result.structuredContent, null, 2);
  return parts.join("\n");
}

function Refused({ error, onAgain }: { error: unknown; onAgain: () => void }) {
  const { code, message, hint } = explain(error);
  const refused = error instanceof ProblemError;
  return (
    <DrawerPart title={refused ? "Refused" : "No response"} end={refused && error.problem.activity_id ? <Record id={error.problem.activity_id} /> : undefined}>
      <p><How status={refused && error.status < 500 ? "blocked" : "error"} /> {code && <code class="dim">{code}</code>}</p>
      <p class="gap"><Visible text={message} /></p>
      {hint && <p class="soft gap"><Visible text={hint} /></p>}
      {code === "APPROVAL_PENDING" && refused && <p class="gap"><a class="link" href={href("approvals", { kind: "call", id: String(error.problem.details?.approval_id) })}>Review</a></p>}
      {!refused && <p class="gap"><Button small onClick={onAgain}>Try again</Button> <span class="dim">Retrying does not run the call twice.</span></p>}
    </DrawerPart>
  );
}

function Record({ id }: { id: string }) {
  return <a class="link" href={href("activity", { id })}>View record</a>;
}
