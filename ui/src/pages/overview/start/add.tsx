import { useState } from "preact/hooks";
import { api } from "../../../api/client";
import type { Server, WaitingTool } from "../../../api/types";
import { approveTogether } from "../../../data/approve";
import { approvals, servers as shared, useApprovals } from "../../../data/shared";
import { count } from "../../../lib/format";
import { href } from "../../../router";
import { announce } from "../../../ui/announce";
import { Button } from "../../../ui/button";
import { anyFound, FoundList, useFound } from "../../../ui/found";
import { ParseBox } from "../../../ui/parse-box";
import { usePaste } from "../../../ui/paste";
import { attempt, toast } from "../../../ui/toast";
import { Visible } from "../../../ui/words";
import { clean, left } from "./model";
import { Added } from "./rows";

/** Step 1: paste servers or select those of clients, check each command, add. */
export function Add({ servers }: { servers: Server[] }) {
  const paste = usePaste();
  const found = useFound({ paste, ticked: true });
  const [busy, setBusy] = useState("");
  const [error, setError] = useState("");
  const waiting = useApprovals().data;
  const acceptable = clean(waiting);
  const total = paste.count + found.count;

  const addAll = async () => {
    if (!total || busy) return;
    setBusy(`Adding ${count(total, "server")}`);
    setError("");
    const pasted = await paste.add();
    const all = [...pasted, ...(await found.add())];
    setBusy("");
    approvals.reload();
    const failed = all.filter((a) => a.error);
    if (failed.length) return setError(`${count(failed.length, "server")} ${failed.length === 1 ? "was" : "were"} not added: ${[...new Set(failed.map((f) => f.error!.message))].join(" ")}`);
    if (pasted.length) paste.setText("");
    announce(`${count(all.length, "server")} added`);
  };
  const samples = async () => {
    setBusy("Starting three sample servers");
    await attempt(() => api.post("/demo"));
    setBusy("");
    shared.reload();
  };
  const accept = async () => {
    setBusy("Approving");
    await attempt(() => acceptAll(acceptable));
    setBusy("");
    approvals.reload();
    shared.reload();
  };
  const rest = left(waiting);
  return (
    <div>
      <h2>Add servers</h2>
      <p>Paste a configuration, or import servers from your clients. Their files are not changed unless you choose to.</p>
      <div class="cols">
        <section><ParseBox of={paste} rows={9} onSubmit={addAll} /></section>
        <section>
          {anyFound(found) ? <FoundList of={found} /> : found.list.data && !servers.length && <><h3>Found on this machine</h3><p class="same">The clients on this machine have no servers to import.</p></>}
          <Added servers={servers} waiting={waiting} />
          <p class="same">You see each command here before it runs.</p>
        </section>
      </div>
      <div class="row go">
        {(total > 0 || !servers.length) && <Button kind="main" decides cap="Ctrl ⏎" disabled={!total || !!busy} onClick={addAll}>{total > 0 ? `Add ${count(total, "server")}` : "Add servers"}</Button>}
        {acceptable.length > 0 && <Button {...(total > 0 ? {} : { kind: "main" as const })} decides disabled={!!busy} onClick={accept}>{`Approve ${count(acceptable.length, "clean tool")}`}</Button>}
        {!servers.length && <Button kind="quiet" decides disabled={!!busy} onClick={samples}>Try three sample servers</Button>}
        {rest > 0 && servers.length > 0 && <a class="link" href={href("approvals")}>{rest === 1 ? "1 item needs" : `${rest} items need`} review in Approvals</a>}
        <span class="dim hide-small" role="status">{busy || (total > 0 ? "Starts the servers and scans their definitions" : "")}</span>
      </div>
      {error && <p class="error-line" role="alert"><Visible text={error} /></p>}
    </div>
  );
}

async function acceptAll(tools: readonly WaitingTool[]): Promise<void> {
  const refused = (await approveTogether(tools.map(({ name, fingerprint }) => ({ name, fingerprint })))).filter((p) => p).length;
  if (refused > 0) toast({ text: `${count(refused, "definition")} changed and still ${refused === 1 ? "needs" : "need"} review.` });
}
