// The texts of the first run about servers that start. All pure.

import type { Server, WaitingTool, Waiting } from "../../../api/types";
import type { StateKind } from "../../../ui/marks";
import { serverState } from "../../../ui/marks";
import { count, number } from "../../../lib/format";

/** Returns the tools that can be approved together. */
export function clean(w: Waiting | undefined): WaitingTool[] {
  return w?.tools.filter((t) => t.together) ?? [];
}

/** Returns how many definitions and servers need an individual review. */
export function left(w: Waiting | undefined): number {
  return w ? w.servers.length + w.total_tools + w.total_offers - clean(w).length : 0;
}

/** Returns the progress of a server: "starting", "14 tools, clean", "failed: …". */
export function progress(s: Server, w: Waiting | undefined): { kind: StateKind; word: string; why?: string } {
  const { kind, word } = serverState(s);
  if (kind === "moving") return { kind, word: s.step === "installing" ? "installing" : s.step === "queued" ? "queued" : "starting" };
  if (s.trouble) return { kind, word, why: s.trouble };
  if (kind === "bad") return { kind, word, why: s.last_error || s.detail || s.failure || "No error message. See its log." };
  if (kind === "ready" || kind === "idle") {
    const waiting = w?.tools.filter((t) => t.server === s.name) ?? [];
    const found = waiting.filter((t) => t.verdict !== "clean").length;
    const tools = count(s.tool_count, "tool");
    if (found > 0) return { kind: "wait", word: `${tools}, ${number(found)} with findings` };
    if (waiting.length > 0) return { kind: "wait", word: `${tools}, clean, ${number(waiting.length)} to approve` };
    return { kind, word: s.tool_count > 0 ? `${tools}, clean` : "no tools" };
  }
  if (s.state === "needs_secret" || s.state === "needs_variable") return { kind, word, why: s.last_error || s.detail || word };
  return { kind, word };
}

// Example prompts by the name of a server.
const questions: readonly [RegExp, string][] = [
  [/^notes$/, "Which notes do I have?"],
  [/weather|forecast/, "What will the weather be in Lisbon tomorrow?"],
  [/file|^fs$/, "Which files are in my code folder?"],
  [/github|gitlab/, "Which issues are open in my repositories?"],
  [/^git|git$/, "What changed in the last commit?"],
  [/postgres|sql|mongo|database|^db$/, "Which tables are in my database?"],
  [/playwright|puppeteer|browser|chrome/, "Open example.com and describe the page."],
  [/context7|docs|documentation/, "What does the documentation of React say about effects?"],
  [/memory|knowledge/, "What do you remember about me?"],
  [/slack|discord|teams|mail/, "Which messages came in today?"],
  [/notion|confluence|wiki/, "Which pages changed this week?"],
  [/jira|linear|asana|todo|task/, "Which tasks are open?"],
  [/fetch|http|web/, "What does example.com say?"],
  [/time|clock|calendar/, "What time is it in Tokyo?"],
  [/search/, "What is new about the Model Context Protocol?"],
  [/kube|k8s|docker/, "Which containers are running?"],
];

/** Returns a prompt that makes an agent use one of the servers, ready ones first. */
export function sentence(servers: readonly Server[]): string {
  const usable = servers.filter((s) => s.enabled && !s.quarantined);
  const ordered = [...usable.filter((s) => s.state === "ready"), ...usable.filter((s) => s.state !== "ready")];
  for (const s of ordered) {
    const fit = questions.find(([names]) => names.test(s.name.toLowerCase()));
    if (fit) return `${fit[1]} Use mcpproxy.`;
  }
  return ordered[0] ? `What can ${ordered[0].name} do? Use mcpproxy.` : "Which tools do you have? Use mcpproxy.";
}
