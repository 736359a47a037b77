// The parts of a definition's detail: what it says, its parameters, hints, what is approved.

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

/** What changed of the parameters; of a new definition, or whole, all of them. */
export function Parameters({ diff, whole, same }: { diff: Diff; whole: boolean; /** What did not change. */ same?: string }) {
  const was = whole ? undefined : diff.approved?.definition;
  const all = parameters(diff.definition, was, diff.changes);
  if (all.length === 0) return null;
  if (was === undefined) {
    return (
      <Part title="Parameters" end={count(all.length, "parameter")}>
        <div class="wide-table">
          <table class="kv params">
            <caption><span class="vh">Parameters</span></caption>
            <thead><tr><th scope="col" class="c0">Parameter</th><th scope="col">What it takes</th></tr></thead>
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
          <caption><span class="vh">Parameters that changed</span></caption>
          <thead><tr><th scope="col" class="c1">Parameter</th><th scope="col" class="c2">Was</th><th scope="col">Is now</th></tr></thead>
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
      <td>{p.was === undefined ? <span class="dim">not there</span> : moved ? <del><Visible text={p.was} /></del> : <span class="dim"><Visible text={p.was} /></span>}</td>
      <td>
        {p.is === undefined ? <span class="dim">gone</span> : moved ? <ins><Visible text={p.is} /></ins> : <Visible text={p.is} />}
        {p.pieces ? <div class="note-diff"><Words text={p.note ?? ""} pieces={p.pieces} /></div> : p.note && p.change === "added" && <><br /><span class="soft">“<Visible text={p.note} />”</span></>}
      </td>
    </tr>
  );
}

/** The four hints; where none changed, a sentence. */
export function Hints({ diff, lane, guessed, reason, overruled, moved }: { diff: Diff; lane: LaneName; guessed?: boolean; reason?: string; overruled: boolean; moved: boolean }) {
  const all = hints(diff.definition, diff.approved?.definition, diff.loosened ?? []);
  const changed = all.filter((h) => h.changed).length;
  const said = all.some((h) => h.is !== "not said");
  const calledAs = <>Called as <Lane lane={lane} guessed={guessed} />{guessed && reason ? <>: <Visible text={reason} /></> : overruled ? ", because your configuration says so" : ""}.</>;
  if (!changed) {
    const words = all.filter((h) => h.is !== "not said").map((h) => (h.is === "true" ? h.name : `${h.name} false`)).join(", ");
    return <Part title="Hints" end={diff.approved ? "unchanged" : undefined}><p class="same">{said ? `The server says ${words}. ` : "The server says none. "}{calledAs}</p></Part>;
  }
  return (
    <Part title="Hints" end={`${changed} of 4 changed`}>
      <div class="wide-table">
        <table class="kv params">
          <caption><span class="vh">Hints</span></caption>
          <thead><tr><th scope="col" class="c0">Hint</th><th scope="col" class="c2">Was</th><th scope="col" class="c2">Is now</th><th scope="col">Effect</th></tr></thead>
          <tbody>
            {all.map((h) => h.changed
              ? <tr key={h.name}><td class="mono">{h.name}</td><td><del>{h.was}</del></td><td><ins>{h.is}</ins></td><td>{h.loosened ? <Tag kind="warm">loosened</Tag> : "stricter"}</td></tr>
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

/** Changes that have no part of their own: name, title, form of the answer. */
export function Others({ changes }: { changes: readonly Difference[] }) {
  if (changes.length === 0) return null;
  return (
    <Part title="Also changed" end={count(changes.length, "place")}>
      <div class="wide-table">
        <table class="kv params">
          <caption><span class="vh">Other changes</span></caption>
          <thead><tr><th scope="col" class="c0">Place</th><th scope="col">Was</th><th scope="col">Is now</th></tr></thead>
          <tbody>
            {changes.map((c) => (
              <tr key={c.path}>
                <td><Visible text={label(c.path)} /></td>
                <td>{c.kind === "added" ? <span class="dim">not there</span> : <del><Visible text={brief(c.old)} /></del>}</td>
                <td>{c.kind === "removed" ? <span class="dim">gone</span> : <ins><Visible text={brief(c.new)} /></ins>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Part>
  );
}

/** Texts with findings that stand elsewhere than in the description. */
export function MarkedTexts({ diff, findings, main }: { diff: Diff; findings: readonly Numbered[]; main: string }) {
  const texts = marked(diff.definition, diff.findings, main);
  return <>{texts.map((t) => <Part key={t.path} title={"In " + t.label}><Words text={t.text} findings={findings.filter((n) => n.finding.path === t.path)} /></Part>)}</>;
}

export function Findings({ findings, clean, children }: { findings: readonly Numbered[]; clean: string; children?: ComponentChildren }) {
  return (
    <Part title="Findings" end={severities(findings.map((n) => n.finding))}>
      {findings.length > 0
        ? <><FindingList findings={findings} /><p class="same">The scanner reads what a server says, not its code.</p></>
        : <p class="same">{clean}</p>}
      {children}
    </Part>
  );
}

export function Source({ diff, server }: { diff: Diff; server?: Server }) {
  const info = server?.server_info;
  const launch = server && (server.url || server.command) ? commandLine(server) : "";
  return (
    <Part title={diff.reason ? "What you would approve" : "What is approved"}>
      <dl class="defs wide">
        {diff.approved && <><dt>Accepted</dt><dd class="mono"><span title={diff.approved.fingerprint}>{short(diff.approved.fingerprint)}</span></dd></>}
        <dt>Now</dt>
        <dd class="mono"><span title={diff.fingerprint}>{short(diff.fingerprint)}</span> <CopyButton text={diff.fingerprint} label="Copy the fingerprint" /></dd>
        {server && <><dt>From</dt><dd><Visible text={[info?.name, info?.version].filter(Boolean).join(" ") || server.name} />{launch && <><br /><span class="mono dim"><Visible text={launch} /></span></>}</dd></>}
      </dl>
    </Part>
  );
}
