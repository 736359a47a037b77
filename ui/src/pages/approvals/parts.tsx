// The parts of a definition's detail: parameters, hints, findings and the approved version.

import type { ComponentChildren } from "preact";
import type { Difference, Lane as LaneName, Server } from "../../api/types";
import { count } from "../../lib/format";
import { commandLine } from "../../lib/paste";
import { CopyButton } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { Lane, Tag } from "../../ui/marks";
import { FindingList, Visible, Words, type Numbered } from "../../ui/words";
import type { Diff } from "./decide";
import { brief, hints, label, marked, parameters, type Parameter } from "./definition";
import { severities, short, type Said } from "./words";

export function Part({ title, end, children }: { title: string; end?: ComponentChildren; children: ComponentChildren }) {
  return <section class="part"><h2>{title}{end && <span class="end">{end}</span>}</h2>{children}</section>;
}

export function VerdictBox({ said }: { said: Said }) {
  return <div class={`verdict ${said.kind}`}><Icon name={said.icon} /><div><strong>{said.strong}</strong> <span><Visible text={said.text} /></span></div></div>;
}

function Sign({ change }: { change: Parameter["change"] }) {
  if (change !== "added" && change !== "removed") return null;
  return <span class="sign"><span aria-hidden="true">{change === "added" ? "+" : "−"}</span><span class="vh">{change}: </span></span>;
}

/** The changed parameters; all of them for a new definition or in the full view. */
export function Parameters({ diff, whole, same }: { diff: Diff; whole: boolean; /** The sentence about unchanged parts. */ same?: string }) {
  const was = whole ? undefined : diff.approved?.definition;
  const all = parameters(diff.definition, was, diff.changes);
  if (all.length === 0) return null;
  if (was === undefined) {
    return (
      <Part title="Parameters" end={count(all.length, "parameter")}>
        <div class="wide-table">
          <table class="kv params">
            <caption><span class="vh">Parameters</span></caption>
            <thead><tr><th scope="col" class="c0">Parameter</th><th scope="col">Type</th></tr></thead>
            <tbody>{all.map((p) => <tr key={p.name}><td><span class="mono"><Visible text={p.name} /></span></td><td><Visible text={p.is ?? ""} />{p.note && <><br /><span class="soft">“<Visible text={p.note} />”</span></>}</td></tr>)}</tbody>
          </table>
        </div>
      </Part>
    );
  }
  const changed = all.filter((p) => p.change !== "same");
  if (changed.length === 0) return null;
  return (
    <Part title="Parameters" end={`${changed.length} of ${all.length} changed`}>
      <div class="wide-table">
        <table class="kv params">
          <caption><span class="vh">Changed parameters</span></caption>
          <thead><tr><th scope="col" class="c1">Parameter</th><th scope="col" class="c2">Before</th><th scope="col">Now</th></tr></thead>
          <tbody>{changed.map((p) => <ParameterRow key={p.name} p={p} />)}</tbody>
        </table>
      </div>
      <p class="same">{same}</p>
    </Part>
  );
}

function ParameterRow({ p }: { p: Parameter }) {
  const name = <span class="mono"><Visible text={p.name} /></span>;
  const named = p.change === "added" ? <ins><Sign change="added" />{name}</ins> : p.change === "removed" ? <del><Sign change="removed" />{name}</del> : name;
  const moved = p.was !== p.is;
  return (
    <tr>
      <td>{named}</td>
      <td>{p.was === undefined ? <span class="dim">none</span> : moved ? <del><Visible text={p.was} /></del> : <span class="dim"><Visible text={p.was} /></span>}</td>
      <td>
        {p.is === undefined ? <span class="dim">removed</span> : moved ? <ins><Visible text={p.is} /></ins> : <Visible text={p.is} />}
        {p.pieces ? <div class="note-diff"><Words text={p.note ?? ""} pieces={p.pieces} /></div> : p.note && p.change === "added" && <><br /><span class="soft">“<Visible text={p.note} />”</span></>}
      </td>
    </tr>
  );
}

/** The four hints; a sentence if none changed. */
export function Hints({ diff, lane, guessed, reason, overruled, moved }: { diff: Diff; lane: LaneName; guessed?: boolean; reason?: string; overruled: boolean; moved: boolean }) {
  const all = hints(diff.definition, diff.approved?.definition, diff.loosened ?? []);
  const changed = all.filter((h) => h.changed).length;
  const said = all.some((h) => h.is !== "not set");
  const calledAs = <>Lane: <Lane lane={lane} guessed={guessed} />{guessed && reason ? <>: <Visible text={reason} /></> : overruled ? ", set in your configuration" : ""}.</>;
  if (!changed) {
    const words = all.filter((h) => h.is !== "not set").map((h) => (h.is === "true" ? h.name : `${h.name} false`)).join(", ");
    return <Part title="Hints" end={diff.approved ? "unchanged" : undefined}><p class="same">{said ? `The server declares ${words}. ` : "The server declares no hints. "}{calledAs}</p></Part>;
  }
  return (
    <Part title="Hints" end={`${changed} of 4 changed`}>
      <div class="wide-table">
        <table class="kv params">
          <caption><span class="vh">Hints</span></caption>
          <thead><tr><th scope="col" class="c0">Hint</th><th scope="col" class="c2">Before</th><th scope="col" class="c2">Now</th><th scope="col">Effect</th></tr></thead>
          <tbody>
            {all.map((h) => h.changed
              ? <tr key={h.name}><td class="mono">{h.name}</td><td><del>{h.was}</del></td><td><ins>{h.is}</ins></td><td>{h.loosened ? <Tag kind="warm">relaxed</Tag> : "stricter"}</td></tr>
              : <tr key={h.name} class="dim"><td class="mono">{h.name}</td><td>{h.was}</td><td>{h.is}</td><td>same</td></tr>)}
          </tbody>
        </table>
      </div>
      {(!moved || guessed || overruled) && <p class="same">{calledAs}</p>}
    </Part>
  );
}

export function LaneMove({ was, is }: { was: LaneName; is: LaneName }) {
  return <Part title="Lane"><p class="move"><Lane lane={was} /><span class="dim"><Icon name="right" small /><span class="vh">becomes</span></span><Lane lane={is} /></p></Part>;
}

/** All other changes: name, title, output schema. */
export function Others({ changes }: { changes: readonly Difference[] }) {
  if (changes.length === 0) return null;
  return (
    <Part title="Also changed" end={count(changes.length, "field")}>
      <div class="wide-table">
        <table class="kv params">
          <caption><span class="vh">Other changes</span></caption>
          <thead><tr><th scope="col" class="c0">Field</th><th scope="col">Before</th><th scope="col">Now</th></tr></thead>
          <tbody>
            {changes.map((c) => (
              <tr key={c.path}>
                <td><Visible text={label(c.path)} /></td>
                <td>{c.kind === "added" ? <span class="dim">none</span> : <del><Visible text={brief(c.old)} /></del>}</td>
                <td>{c.kind === "removed" ? <span class="dim">removed</span> : <ins><Visible text={brief(c.new)} /></ins>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Part>
  );
}

/** Texts with findings outside the description. */
export function MarkedTexts({ diff, findings, main }: { diff: Diff; findings: readonly Numbered[]; main: string }) {
  const texts = marked(diff.definition, diff.findings, main);
  return <>{texts.map((t) => <Part key={t.path} title={"In " + t.label}><Words text={t.text} findings={findings.filter((n) => n.finding.path === t.path)} /></Part>)}</>;
}

export function Findings({ findings, clean, children }: { findings: readonly Numbered[]; clean: string; children?: ComponentChildren }) {
  return (
    <Part title="Findings" end={severities(findings.map((n) => n.finding))}>
      {findings.length > 0
        ? <><FindingList findings={findings} /><p class="same">The scanner reads definitions, not the code of the server.</p></>
        : <p class="same">{clean}</p>}
      {children}
    </Part>
  );
}

export function Source({ diff, server }: { diff: Diff; server?: Server }) {
  const info = server?.server_info;
  const launch = server && (server.url || server.command) ? commandLine(server) : "";
  return (
    <Part title={diff.reason ? "Fingerprints" : "Approved version"}>
      <dl class="defs wide">
        {diff.approved && <><dt>Approved</dt><dd class="mono"><span title={diff.approved.fingerprint}>{short(diff.approved.fingerprint)}</span></dd></>}
        <dt>Current</dt>
        <dd class="mono"><span title={diff.fingerprint}>{short(diff.fingerprint)}</span> <CopyButton text={diff.fingerprint} label="Copy fingerprint" /></dd>
        {server && <><dt>Server</dt><dd><Visible text={[info?.name, info?.version].filter(Boolean).join(" ") || server.name} />{launch && <><br /><span class="mono dim"><Visible text={launch} /></span></>}</dd></>}
      </dl>
    </Part>
  );
}
