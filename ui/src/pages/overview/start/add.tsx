import { useState } from "preact/hooks";
import { api, explain } from "../../../api/client";
import type { ParsedServer, Server } from "../../../api/types";
import { approvals, servers as shared, useApprovals } from "../../../data/shared";
import { count } from "../../../lib/format";
import { bodyOf, secretKey } from "../../../lib/paste";
import { href } from "../../../router";
import { announce } from "../../../ui/announce";
import { Button } from "../../../ui/button";
import { attempt, toast } from "../../../ui/toast";
import { clean, left } from "./model";
import { useParsed } from "./parsed";
import { Added, keyIn, ToAdd, type Failure } from "./rows";

const atOnce = 3; // servers that are added at a time: each answer waits until it has started

/** Step 1: paste, see each command, add. */
export function Add({ servers }: { servers: Server[] }) {
  const [text, setText] = useState("");
  const [referenced, setReferenced] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState("");
  const [failures, setFailures] = useState<readonly Failure[]>([]);
  const parsed = useParsed(text);
  const waiting = useApprovals().data;
  const acceptable = clean(waiting);
  // One with the name of a server that is there is not added, and one that is being read anew is not either.
  const fresh = parsed.current ? (parsed.data?.servers.filter((s) => !s.exists && !servers.some((is) => is.name === s.name)) ?? []) : [];

  const addAll = async () => {
    if (!fresh.length || busy) return;
    setBusy(`Adding ${count(fresh.length, "server")}`);
    const failed: Failure[] = [];
    const queue = [...fresh];
    const worker = async () => {
      for (let s = queue.shift(); s; s = queue.shift()) {
        const failure = await addOne(s, referenced);
        if (failure) failed.push(failure);
        shared.reload();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    setFailures(failed);
    setBusy("");
    approvals.reload();
    if (failed.length) return;
    setText("");
    announce(`${count(fresh.length, "server")} added`);
  };
  const toys = async () => {
    setBusy("Starting three toy servers");
    await attempt(() => api.post("/demo"));
    setBusy("");
    shared.reload();
  };
  const accept = async () => {
    setBusy("Accepting");
    await attempt(() => acceptAll(acceptable));
    setBusy("");
    approvals.reload();
    shared.reload();
  };
  const rest = left(waiting);
  const toAdd = fresh.length > 0;
  return (
    <div>
      <h2>Add servers</h2>
      <p>Paste what you have. Nothing is started before you have seen its command, here.</p>
      <div class="cols">
        <section>
          <h3><label for="paste">Paste any client’s JSON</label><small>or a command, or a URL</small></h3>
          <textarea
            class="field mono" id="paste" rows={11} wrap="off" spellcheck={false} autocomplete="off" value={text} aria-describedby="parsed" placeholder={"npx -y @modelcontextprotocol/server-filesystem ~/code\n\nhttps://mcp.example.com/mcp"}
            onInput={(e) => setText(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
              e.preventDefault();
              void addAll();
            }}
          />
        </section>
        <section id="parsed">
          <ToAdd parsed={parsed} servers={servers} referenced={referenced} onReferenced={setReferenced} failures={failures} />
          <Added servers={servers} waiting={waiting} />
        </section>
      </div>
      <div class="row go">
        {(toAdd || !servers.length) && <Button kind="main" decides cap="Ctrl ⏎" disabled={!toAdd || !!busy} onClick={addAll}>{toAdd ? `Add ${count(fresh.length, "server")}` : "Add servers"}</Button>}
        {acceptable.length > 0 && <Button {...(toAdd ? {} : { kind: "main" as const })} decides disabled={!!busy} onClick={accept}>{`Accept ${count(acceptable.length, "clean tool")}`}</Button>}
        {!servers.length && <Button kind="quiet" decides disabled={!!busy} onClick={toys}>Try with three toy servers instead</Button>}
        {rest > 0 && servers.length > 0 && <a class="link" href={href("approvals")}>{rest === 1 ? "One thing waits" : `${rest} things wait`} for a look in Approvals</a>}
        <span class="dim hide-small" role="status">{busy || (toAdd ? "Starts them, lists their tools, scans every definition" : "")}</span>
      </div>
    </div>
  );
}

async function addOne(s: ParsedServer, referenced: ReadonlySet<string>): Promise<Failure | undefined> {
  try {
    await api.post("/servers", bodyOf(s, { hidden: s.secrets.filter((secret) => referenced.has(keyIn(s.name, secret))).map(secretKey) }));
    return undefined;
  } catch (error) {
    const { message, hint } = explain(error);
    return { name: s.name, message: [message, hint].filter(Boolean).join(" ") };
  }
}

async function acceptAll(tools: readonly { name: string; fingerprint: string }[]): Promise<void> {
  let refused = 0;
  for (let at = 0; at < tools.length; at += 500) {
    const part = tools.slice(at, at + 500).map(({ name, fingerprint }) => ({ name, fingerprint }));
    const { results } = await api.post<{ results: { ok: boolean }[] }>("/approvals/approve", { tools: part });
    refused += results.filter((r) => !r.ok).length;
  }
  if (refused > 0) toast({ text: `${count(refused, "definition")} changed meanwhile, and still ${refused === 1 ? "waits" : "wait"}.` });
}
