// What needs attention: pending calls, then by severity: likely attacks, servers to review, servers
// that failed, logins, other definitions. Three of a kind become one row.

import type { Finding, PendingCall, Server, Status, Waiting, WaitingOffer, WaitingServer, WaitingTool } from "../../api/types";
import { count, number, span } from "../../lib/format";
import { commandLine } from "../../lib/paste";
import { actorWords } from "../../lib/who";
import { href } from "../../router";
import type { IconName } from "../../ui/icon";

/** A piece of a line: a text of the UI, a text from a server, or the name of a server or tool. */
export type Bit = string | { code: string } | { server: string; tool?: string };

export interface Need {
  key: string;
  icon: IconName;
  hot: boolean;
  title: readonly Bit[];
  text: readonly Bit[];
  since?: string;
  /** A pending call, for its countdown. */
  call?: PendingCall;
  act: { label: string; href: string; /** Opens the secrets dialog for a server, or for all if "". */ secrets?: string };
  /** A definition of which refused calls are counted. */
  tool?: string;
}

type Definition = WaitingTool | WaitingOffer;

const few = 3; // of a kind, that become one row
const named = 3; // in the text of such a row

/** Returns what needs attention. Blocked definitions do not. */
export function needsOf(w: Waiting, servers: readonly Server[], status: Status | undefined, now: Date, calls: readonly PendingCall[] = []): Need[] {
  const open = ([...w.tools, ...w.offers] as Definition[]).filter((d) => d.reason !== "blocked");
  const poisoned = open.filter((d) => d.verdict === "block");
  const others = open.filter((d) => d.verdict !== "block");
  const on = servers.filter((s) => s.enabled && !s.quarantined);
  const login = on.filter((s) => s.state === "needs_login" || s.needs_login);
  const broken = on.filter((s) => s.state === "failed" && !login.includes(s));
  const needs = [
    ...gather(calls, held, (all) => ({
      key: "calls", icon: "clock", hot: false, title: [`${number(all.length)} calls need approval`], text: [...names(all), ". They are held until you approve."], call: all[0], act: answer(all[0]!),
    })),
    ...log(status),
    ...unconfirmed(status),
    ...gather(poisoned, poison, (all) => ({
      key: "poisoned", icon: "shield", hot: true, title: [`${number(w.total_poisoned)} definitions look like attacks`], text: [...names(all.map(nameOf), w.total_poisoned), ". No agent has seen them."],
      since: oldest(all), act: review(),
    })),
    ...gather(w.servers, newServer, (all) => ({
      key: "servers", icon: "plus", hot: false, title: [`${number(all.length)} servers need review`], text: [...names(all.map((s) => ({ server: s.name }))), "."], since: oldest(all), act: review(),
    })),
    ...(w.forgotten ?? []).map((f): Need => ({
      key: "lost " + f.name, icon: "plus", hot: false, title: [{ server: f.name }, " lost its approvals"], text: [`${count(f.tools + f.offers, "definition")} must be approved again.`],
      act: review({ id: f.name }),
    })),
    ...gather(broken, (s) => crash(s, now), (all) => ({
      key: "broken", icon: "err", hot: true, title: [`${number(all.length)} servers failed`], text: reasons(all, whyBroken), since: oldest(all), act: { label: "View", href: href("servers") },
    })),
    ...gather(on.filter((s) => s.trouble), unfetched, (all) => ({
      key: "unfetched", icon: "err", hot: false, title: [`${number(all.length)} servers cannot be downloaded`], text: reasons(all, (s) => s.trouble ?? ""), since: oldest(all), act: { label: "View", href: href("servers") },
    })),
    ...gather(on.filter((s) => s.state === "needs_secret"), needsSecret, (all) => ({
      key: "secrets", icon: "key", hot: false, title: [`${number(all.length)} servers need a secret`], text: reasons(all, (s) => (s.last_error ?? "").trim()), since: oldest(all), act: { label: "Set secrets…", href: href("servers"), secrets: "" },
    })),
    ...gather(on.filter((s) => s.state === "needs_variable"), needsVariable, (all) => ({
      key: "variables", icon: "key", hot: false, title: [`${number(all.length)} servers need a variable`], text: reasons(all, (s) => (s.last_error ?? "").trim()), since: oldest(all), act: { label: "View", href: href("servers") },
    })),
    ...gather(login, needsLogin, (all) => ({
      key: "logins", icon: "key", hot: false, title: [`${number(all.length)} servers need a login`], text: [...names(all.map((s) => ({ server: s.name }))), "."], since: oldest(all), act: { label: "Log in", href: href("servers") },
    })),
  ] satisfies Need[];
  const total = w.total_tools + w.total_offers - w.total_poisoned - w.total_blocked;
  return [...needs, ...(total < few ? others.map(definition) : [rest(others, total, w.total_findings - w.total_poisoned, poisoned.length > 0)])];
}

function gather<T>(all: readonly T[], one: (item: T) => Need, many: (all: readonly T[]) => Need): Need[] {
  return all.length < few ? all.map(one) : [many(all)];
}

function held(c: PendingCall): Need {
  return {
    key: "call " + c.id, icon: "clock", hot: false, title: [{ server: c.server, tool: c.tool }, " needs approval"],
    text: [`${c.client_name || actorWords(c.actor)} called it. Lane: ${c.lane}, because `, c.lane_reason, "."], call: c, act: answer(c),
  };
}

function answer(c: PendingCall): Need["act"] {
  return { label: "Review", href: href("approvals", { kind: "call", id: c.id }) };
}

function log(status: Status | undefined): Need[] {
  const v = status?.activity.verified;
  if (!v || v.ok) return [];
  return [{ key: "log", icon: "shield", hot: true, title: ["The activity log failed verification"], text: ["A record was changed or removed after it was written."], since: v.at, act: { label: "View", href: href("activity") } }];
}

function unconfirmed(status: Status | undefined): Need[] {
  const n = status?.unconfirmed ?? 0;
  if (n === 0) return [];
  return [{
    key: "config", icon: "shield", hot: false, title: [n === 1 ? "A configuration change needs confirmation" : `${number(n)} configuration changes need confirmation`],
    text: ["They grant more access. If you made them, confirm them in a terminal: ", { code: "mcpproxy config confirm" }, "."], act: { label: "View", href: href("settings") },
  }];
}

function nameOf(d: Definition): { server: string; tool?: string } {
  return "tool" in d ? { server: d.server, tool: d.tool } : d.name ? { server: d.server, tool: d.name } : { server: d.server };
}

function review(params: Record<string, string> = {}): Need["act"] {
  return { label: "Review", href: href("approvals", params) };
}

function reviewOf(d: Definition): Need["act"] {
  if ("tool" in d) return review({ id: `${d.server}:${d.tool}` });
  return review({ kind: d.kind, id: d.name ? `${d.server}:${d.name}` : d.server });
}

function kindOf(d: Definition): Bit[] {
  if ("tool" in d || d.kind === "instructions") return [];
  return [`, a ${d.kind === "template" ? "resource template" : d.kind},`];
}

function head(d: Definition): Bit[] {
  const verb = d.reason === "changed" ? " changed" : " is new";
  if (!("tool" in d) && d.kind === "instructions") return ["The instructions of ", { server: d.server }, verb.replace("is", "are")];
  return [nameOf(d), ...kindOf(d), verb];
}

function poison(d: Definition): Need {
  return {
    key: `${"tool" in d ? "tool" : d.kind} ${d.server}:${nameOf(d).tool ?? ""}`, icon: "shield", hot: true, title: head(d), text: quoted(d.reason === "changed", d.findings), since: d.since,
    act: reviewOf(d), ...("tool" in d ? { tool: d.tool } : {}),
  };
}

/** Returns the findings as a sentence, with the two most severe reasons. */
export function quoted(changed: boolean, findings: readonly Finding[]): Bit[] {
  const order = { block: 0, review: 1, note: 2 };
  const reasons = [...new Set(findings.toSorted((a, b) => order[a.severity] - order[b.severity]).map((f) => f.reason))].slice(0, 2);
  if (!reasons.length) return ["The scanner could not read all of it."];
  const more = findings.length - reasons.length;
  const said = reasons.map((r) => `“${r}”`);
  const list = more > 0 ? `${said.join(said.length > 1 ? " and " : "")}, and ${count(more, "finding")} more` : said.join(" and ");
  return [`${changed ? "Its new text" : "Its text"} ${list}.`];
}

function newServer(s: WaitingServer): Need {
  const act = review({ id: s.name });
  if (s.stage === "definitions") {
    const found = s.findings > 0 ? `, ${count(s.findings, "finding")}` : ", no findings";
    return { key: "server " + s.name, icon: "plus", hot: false, title: [{ server: s.name }, " needs review"], text: [`It has ${count(s.tool_count, "tool")}${found}. Agents cannot see them.`], since: s.since, act };
  }
  const by = s.client_name ?? s.proposed_by;
  return {
    key: "server " + s.name, icon: "plus", hot: false, title: [{ server: s.name }, by ? " was proposed" : " needs review"],
    text: [by ? `Proposed by ${by}: ` : "Launch: ", { code: commandLine(s.launch) }, ". It has not been started."], since: s.proposed_at ?? s.since, act,
  };
}

function crash(s: Server, now: Date): Need {
  const again = s.retry_at ? (Date.parse(s.retry_at) - now.getTime()) / 1000 : 0;
  const tries = again > 0 ? [` Next retry in ${span(again)}.`] : [];
  const why = whyBroken(s);
  return {
    key: "broken " + s.name, icon: "err", hot: true, title: [{ server: s.name }, (s.restarts ?? 0) > 1 ? " keeps failing" : " failed"],
    text: [...(s.restarts ? [`Failed ${count(s.restarts + 1, "time")}: `] : []), why ? { code: why } : "No error message", ".", ...tries], since: s.since,
    act: { label: "Open log", href: href("servers", { id: s.name }) },
  };
}

function whyBroken(s: Server): string {
  return (s.last_error || s.detail || "").trim().replace(/\.$/, "");
}

// The first servers, each with its reason.
function reasons(all: readonly Server[], why: (s: Server) => string): Bit[] {
  if (!all.some(why)) return [...names(all.map((s) => ({ server: s.name }))), "."];
  const shown = all.slice(0, named).flatMap((s, i): Bit[] => [...(i ? ["; "] : []), { server: s.name }, ...(why(s) ? [": ", { code: why(s) }] : [])]);
  return [...shown, all.length > named ? `; and ${number(all.length - named)} more.` : "."];
}

function unfetched(s: Server): Need {
  return { key: "unfetched " + s.name, icon: "err", hot: false, title: [{ server: s.name }, " cannot be downloaded"], text: [{ code: s.trouble ?? "" }], since: s.since, act: { label: "View", href: href("servers", { id: s.name }) } };
}

function needsSecret(s: Server): Need {
  return { key: "secret " + s.name, icon: "key", hot: false, title: [{ server: s.name }, " needs a secret"], text: [{ code: (s.last_error ?? "").trim() }], since: s.since, act: { label: "Set secret…", href: href("servers", { id: s.name }), secrets: s.name } };
}

function needsVariable(s: Server): Need {
  return { key: "variable " + s.name, icon: "key", hot: false, title: [{ server: s.name }, " needs a variable"], text: [{ code: (s.last_error ?? "").trim() }], since: s.since, act: { label: "View", href: href("servers", { id: s.name }) } };
}

function needsLogin(s: Server): Need {
  const tools = s.tool_count > 0 ? `Calls to its ${count(s.tool_count, "tool")} fail with LOGIN_NEEDED.` : "Its tools are listed after the login.";
  return { key: "login " + s.name, icon: "key", hot: false, title: [{ server: s.name }, " needs a login"], text: [tools], since: s.since, act: { label: "Log in", href: href("servers", { id: s.name }) } };
}

function definition(d: Definition): Need {
  const found = d.findings.length ? quoted(d.reason === "changed", d.findings) : ["Agents cannot use it until you approve it."];
  return {
    key: `${"tool" in d ? "tool" : d.kind} ${d.server}:${nameOf(d).tool ?? ""}`, icon: "inbox", hot: false, title: head(d),
    text: isLooser(d) ? [looser(d), "."] : found, since: d.since, act: reviewOf(d),
  };
}

function isLooser(d: Definition): d is WaitingTool {
  return "tool" in d && !!d.loosened?.length;
}

function looser(d: WaitingTool): string {
  return d.loosened!.some((hint) => hint.includes("destructive")) ? "It is no longer marked destructive" : "It relaxed its hints";
}

// all has the first page; total and found count all of them.
function rest(all: readonly Definition[], total: number, found: number, more: boolean): Need {
  const loose = all.find(isLooser);
  const text: Bit[] = [found > 0 ? `${number(found)} with findings` : "No findings"];
  if (loose) text.push("; ", nameOf(loose), looser(loose).slice(2));
  return { key: "definitions", icon: "inbox", hot: false, title: [`${number(total)} ${more ? "more " : ""}definitions need review`], text: [...text, "."], since: oldest(all), act: review() };
}

function names(all: readonly { server: string; tool?: string }[], total = all.length): Bit[] {
  const shown: Bit[] = all.slice(0, named).flatMap((n, i) => (i ? [", ", n] : [n]));
  return total > named ? [...shown, ` and ${number(total - named)} more`] : shown;
}

function oldest(all: readonly { since?: string }[]): string | undefined {
  return all.map((d) => d.since).filter((s) => s !== undefined).sort()[0];
}
