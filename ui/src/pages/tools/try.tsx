import { createPortal } from "preact";
import { useId, useMemo, useRef, useState } from "preact/hooks";
import { api, OfflineError } from "../../api/client";
import type { CallAnswer, ToolDetail } from "../../api/types";
import { count } from "../../lib/format";
import { own } from "../../lib/own";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { DrawerPart } from "../../ui/drawer";
import { Seg } from "../../ui/field";
import { Json } from "../../ui/json";
import { Visible } from "../../ui/words";
import { Answer, type Outcome } from "./answer";
import { ArgumentField } from "./field";
import { argumentsOf, entriesOf, fields, json, type Entries } from "./form";

/** A form from the schema, and the result below it. foot is the element for the buttons. */
export function TryIt({ tool, foot, onCalled }: { tool: ToolDetail; foot: HTMLElement; onCalled: () => void }) {
  const all = useMemo(() => fields(tool.inputSchema), [tool.inputSchema]);
  const [mode, setMode] = useState<"form" | "json">(all ? "form" : "json");
  const [entries, setEntries] = useState<Entries>({});
  const [text, setText] = useState("{}");
  const [reason, setReason] = useState("");
  const [mistakes, setMistakes] = useState<Record<string, string>>({});
  const [more, setMore] = useState(false);
  const [ask, setAsk] = useState<Record<string, unknown>>();
  const [outcome, setOutcome] = useState<Outcome>();
  const sent = useRef({ body: "", key: "" });
  const box = useRef<HTMLFormElement>(null);
  const reasonId = useId();

  const call = async (args: Record<string, unknown>) => {
    const body = { tool_variant: tool.call_with, name: tool.name, args, intent: { operation_type: tool.lane, ...(reason.trim() ? { reason: reason.trim() } : {}) } };
    // A retry uses the same idempotency key, since the first request may have arrived.
    const key = JSON.stringify(body);
    if (sent.current.body !== key) sent.current = { body: key, key: crypto.randomUUID() };
    setOutcome({ kind: "running" });
    try {
      setOutcome({ kind: "answer", answer: await api.post<CallAnswer>("/tools/call", body, { once: sent.current.key }) });
      sent.current.body = "";
      onCalled();
    } catch (error) {
      if (!(error instanceof OfflineError)) sent.current.body = "";
      setOutcome({ kind: "error", error });
    }
    requestAnimationFrame(() => box.current?.parentElement?.querySelector(".answer")?.scrollIntoView({ block: "nearest" }));
  };
  const submit = () => {
    if (outcome?.kind === "running") return;
    const read = mode === "form" ? argumentsOf(all!, entries) : fromJson(text);
    setMistakes(read.mistakes);
    const first = Object.keys(read.mistakes)[0];
    if (first !== undefined) {
      if (mode === "form" && all!.find((f) => f.name === first)?.required === false) setMore(true);
      return requestAnimationFrame(() => box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
    }
    if (tool.lane === "destructive") setAsk(read.args);
    else void call(read.args);
  };
  const turn = (to: "form" | "json") => {
    if (to === "json") setText(JSON.stringify(argumentsOf(all!, entries).args, null, 2));
    else {
      const parsed = json(text);
      const back = "value" in parsed ? entriesOf(all!, parsed.value) : undefined;
      if (!back) return setMistakes({ "": "The form does not support these arguments. Use JSON." });
      setEntries(back);
    }
    setMistakes({});
    setMode(to);
  };

  const required = all?.filter((f) => f.required || own(entries, f.name)) ?? [];
  const shown = more || !all || all.length - required.length <= 2 ? all ?? [] : required;
  const hidden = (all?.length ?? 0) - shown.length;
  return (
    <>
      <DrawerPart title="Try it" end={all && all.length > 0 && <Seg tiny label="Argument format" value={mode} onChange={turn} options={[{ value: "form", label: "Form" }, { value: "json", label: "JSON" }]} />}>
        <form class="form" ref={box} onSubmit={(e) => (e.preventDefault(), submit())} onKeyDown={(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && (e.preventDefault(), submit())}>
          {mode === "form"
            ? <div class="args">{shown.map((f) => <div key={f.name} class={f.kind === "long" || f.kind === "strings" || f.kind === "json" ? "wide" : undefined}><ArgumentField field={f} value={own(entries, f.name) ?? ""} mistake={own(mistakes, f.name)} onInput={(v) => setEntries({ ...entries, [f.name]: v })} /></div>)}</div>
            : (
              <div>
                <label class="lab" for={reasonId + "j"}>Arguments</label>
                <textarea class="field mono" id={reasonId + "j"} rows={8} value={text} spellcheck={false} aria-invalid={mistakes[""] ? "true" : undefined} aria-describedby={reasonId + "n"} onInput={(e) => setText(e.currentTarget.value)} />
                <p id={reasonId + "n"} class={mistakes[""] ? "field-note bad" : "field-note"} role={mistakes[""] ? "alert" : undefined}>{mistakes[""] ?? "A JSON object."}</p>
              </div>
            )}
          <div><label class="lab" for={reasonId}>Reason (recorded)</label><input class="field" id={reasonId} maxLength={1000} placeholder="Why you call it" value={reason} autocomplete="off" onInput={(e) => setReason(e.currentTarget.value)} /></div>
        </form>
      </DrawerPart>
      {outcome && <Answer name={tool.name} outcome={outcome} onAgain={submit} />}
      {ask && <Sure tool={tool} args={ask} onClose={() => setAsk(undefined)} onYes={() => (setAsk(undefined), void call(ask))} />}
      {createPortal(<><Button kind="main" decides disabled={outcome?.kind === "running"} onClick={submit}>{outcome?.kind === "running" ? "Calling…" : `Call as ${tool.lane}`}</Button>
        {mode === "form" && hidden > 0 && <Button kind="quiet" onClick={() => setMore(true)}>{count(hidden, "more field", "more fields")}</Button>}</>, foot)}
    </>
  );
}

function fromJson(text: string): { args: Record<string, unknown>; mistakes: Record<string, string> } {
  const read = json(text);
  if ("mistake" in read) return { args: {}, mistakes: { "": read.mistake } };
  const v = read.value;
  return typeof v === "object" && v !== null && !Array.isArray(v) ? { args: v as Record<string, unknown>, mistakes: {} } : { args: {}, mistakes: { "": "Arguments must be an object: {…}." } };
}

// Confirms a destructive call and shows its arguments.
function Sure({ tool, args, onClose, onYes }: { tool: ToolDetail; args: Record<string, unknown>; onClose: () => void; onYes: () => void }) {
  return (
    <Dialog title="Run destructive call?" onClose={onClose}>
      <p class="soft"><span class="mono"><Visible text={tool.name} /></span> deletes data or cannot be undone. Arguments:</p>
      <Json value={args} label="Arguments" wrap />
      <div class="end"><Button onClick={onClose}>Cancel</Button><Button kind="danger" decides onClick={onYes}>Call as destructive</Button></div>
    </Dialog>
  );
}
