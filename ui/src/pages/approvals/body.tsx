// A definition and its changes, in three views.

import { useEffect, useState } from "preact/hooks";
import type { Lane as LaneName, Server, Tool } from "../../api/types";
import { Json } from "../../ui/json";
import { CopyButton } from "../../ui/copy";
import { numbered, Visible, Words, type Numbered } from "../../ui/words";
import type { Diff, Target } from "./decide";
import { laneOf, object, otherChanges, pieces, sorted, wordCount } from "./definition";
import { Findings, Hints, LaneMove, MarkedTexts, Others, Parameters, Part, Source } from "./parts";
import { untouched } from "./words";

export type View = "difference" | "whole" | "json";
export const views = [{ value: "difference", label: "Changes" }, { value: "whole", label: "Full" }, { value: "json", label: "JSON" }] as const;

export interface Lanes { was: LaneName; is: LaneName; guessed?: boolean; reason?: string; overruled: boolean }

/** Returns the old and the new lane of the tool. The daemon decides, since the configuration can override hints. */
export function lanesOf(diff: Diff, tool?: Pick<Tool, "call_with" | "inferred_operation" | "inferred_reason">, listed?: { lane?: LaneName; guessed?: boolean }): Lanes {
  const own = laneOf(diff.definition);
  const said = (tool?.call_with.replace("call_tool_", "") as LaneName | undefined) ?? listed?.lane ?? own;
  const hints = object(object(diff.definition).annotations);
  const guessed = listed?.guessed ?? (!!tool?.inferred_operation && hints.readOnlyHint === undefined && hints.destructiveHint === undefined);
  const overruled = said !== own && !guessed;
  const moved = diff.changes.some((c) => c.hint) && !overruled && diff.approved?.definition !== undefined;
  return { was: moved ? laneOf(diff.approved!.definition) : said, is: said, guessed, reason: tool?.inferred_reason, overruled };
}

export function Body({ target, diff, view, lanes, server }: { target: Target; diff: Diff; view: View; lanes: Lanes; server?: Server }) {
  const findings = numberedFor(diff, mainText(target));
  if (view === "json") return <JsonView diff={diff} />;
  const whole = view === "whole" || !diff.approved?.definition;
  const isTool = target.kind === "tool";
  const moved = !whole && isTool && lanes.was !== lanes.is;
  const changedParameters = !whole && diff.changes.some((c) => /^\/(inputSchema\/(properties|required)|arguments)(\/|$)/.test(c.path));
  const rest = whole ? "" : untouched(diff);
  const clean = "No findings in the texts." + (changedParameters || !rest ? "" : " " + rest);
  return (
    <div class="beside">
      <div>
        {moved && <LaneMove was={lanes.was} is={lanes.is} />}
        {whole && <Names diff={diff} />}
        <Description target={target} diff={diff} findings={findings} whole={whole} />
        <MarkedTexts diff={diff} findings={findings} main={mainText(target)} />
        <Parameters diff={diff} whole={whole} same={rest} />
        {isTool && <Hints diff={diff} lane={lanes.is} guessed={lanes.guessed} reason={lanes.reason} overruled={lanes.overruled} moved={moved} />}
        {!whole && <Others changes={otherChanges(diff.changes, mainText(target))} />}
        {diff.truncated && <p class="same">Some changes are not shown here. Open JSON to see all of them.</p>}
        {whole && object(diff.definition).outputSchema !== undefined && <Part title="Output schema"><div class="gap"><Json label="output schema" value={object(diff.definition).outputSchema} /></div></Part>}
        <Source diff={diff} server={server} />
      </div>
      <Findings findings={findings} clean={clean}>
        {!whole && diff.loosened?.includes("destructiveHint") && lanes.was === "destructive" && (
          <>
            <h2 class="sub">Keep it marked destructive?</h2>
            <p class="same"><i>Approve, keep destructive</i> sets <span class="mono">"destructiveHint": true</span> in the configuration. This overrides what the server declares.</p>
          </>
        )}
      </Findings>
    </div>
  );
}

// The text that agents read first: the description, or all of the instructions.
const mainText = (t: Target) => (t.kind === "instructions" ? "instructions" : "/description");

// The findings of the main text get the first numbers.
function numberedFor(diff: Diff, main: string): Numbered[] {
  const inMain = diff.findings.filter((f) => f.path === main);
  const first = numbered(inMain);
  return [...first, ...numbered(diff.findings.filter((f) => f.path !== main)).map((n) => ({ ...n, no: n.no + inMain.length }))];
}

function Description({ target, diff, findings, whole }: { target: Target; diff: Diff; findings: readonly Numbered[]; whole: boolean }) {
  const main = mainText(target);
  const instructions = target.kind === "instructions";
  const text = instructions ? diff.definition : object(diff.definition).description;
  const change = diff.changes.find((c) => c.path === (instructions ? "" : main)) ?? (instructions ? diff.changes[0] : undefined);
  const here = findings.filter((n) => n.finding.path === main);
  const title = instructions ? "Instructions" : "Description";
  if (typeof text !== "string") return whole || change ? <Part title={title}><p class="same">{change ? "Removed." : "None."}</p></Part> : null;
  if (!whole && !change && here.length === 0) return null;
  const parts = whole ? undefined : pieces(change);
  const end = parts ? wordCount(parts) : diff.approved ? (change ? "current" : "unchanged") : "new";
  return <Part title={title} end={end}><Words text={text} pieces={parts} findings={here} /></Part>;
}

function Names({ diff }: { diff: Diff }) {
  const d = object(diff.definition);
  const rows = (["title", "uri", "uriTemplate", "mimeType"] as const).filter((k) => typeof d[k] === "string");
  if (rows.length === 0) return null;
  const words = { title: "Title", uri: "URI", uriTemplate: "Template", mimeType: "Type" };
  return <Part title="Names"><dl class="defs wide">{rows.map((k) => <><dt>{words[k]}</dt><dd><Visible text={String(d[k])} /></dd></>)}</dl></Part>;
}

type Line = { kind: "same" | "added" | "removed"; text: string };

// The definition line by line, compared with the approved one if there is one.
function JsonView({ diff }: { diff: Diff }) {
  const old = diff.approved?.definition;
  const [lines, setLines] = useState<Line[]>();
  useEffect(() => {
    if (old === undefined) return;
    let current = true;
    const text = (v: unknown) => JSON.stringify(sorted(v), null, 2);
    void import("diff").then(({ diffLines }) => {
      const all = diffLines(text(old), text(diff.definition), { timeout: 400 });
      if (current) setLines(all?.map((p) => ({ kind: p.added ? "added" : p.removed ? "removed" : "same", text: p.value.replace(/\n$/, "") })));
    }).catch(() => current && setLines(undefined));
    return () => void (current = false);
  }, [diff]);
  return (
    <Part title="Definition" end={<>{lines ? "compared with the approved one, keys sorted" : "as sent by the server"}<CopyButton text={() => JSON.stringify(diff.definition, null, 2)} label="Copy definition" /></>}>
      <div class="gap">
        {lines
          ? <pre class="json diff wrap" tabIndex={0} aria-label="Changes to the definition">{lines.map((l, i) => l.kind === "added" ? <ins key={i}>{signed(l, "+")}</ins> : l.kind === "removed" ? <del key={i}>{signed(l, "−")}</del> : <span key={i}><Visible text={indent(l.text, "  ")} />{"\n"}</span>)}</pre>
          : <Json label="definition" value={diff.definition} wrap />}
      </div>
    </Part>
  );
}

const indent = (text: string, by: string) => text.split("\n").map((l) => by + l).join("\n");

function signed(l: Line, sign: string) {
  return <><span class="vh">{l.kind}: </span><Visible text={indent(l.text, sign + " ")} /></>;
}
