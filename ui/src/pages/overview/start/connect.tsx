import { useState } from "preact/hooks";
import type { Client } from "../../../api/types";
import { useClients, useStatus } from "../../../data/shared";
import { standing, type Standing } from "../../../lib/clients";
import { href } from "../../../router";
import { ByHand, ConnectButtons, Snippet, usePreview, Written } from "../../../ui/connect";
import { Loaded } from "../../../ui/parts";
import { Visible } from "../../../ui/words";

const another = "another";

const how: Record<Standing, string> = { connected: "connected", not: "not connected", foreign: "connected to another server", missing: "command not found", broken: "cannot read its file" };

/** Step 2: connect a client that is on this machine. */
export function Connect() {
  const known = useClients();
  const address = useStatus().data?.surfaces.find((s) => s.name === "mcp")?.address;
  const [picked, pick] = useState("");
  const here = known.data?.clients.filter((c) => c.found || c.connected) ?? [];
  const open = here.find((c) => c.id === picked);
  const other = known.data !== undefined && (picked === another || here.length === 0);
  return (
    <div>
      <h2>Connect a client</h2>
      <p>Adds one entry to the client’s file. You see the change first, and you can undo it.</p>
      <Loaded of={known} title="Could not load clients">
        {() => (
          <div class="clients by-hand" role="group" aria-label="Clients">
            {here.map((c) => <button type="button" key={c.id} aria-pressed={c.id === picked} onClick={() => pick(c.id)}><b>{c.name}</b><span>{how[standing(c)]}</span></button>)}
            <button type="button" aria-pressed={other} onClick={() => pick(another)}><b>Other</b><span>copy address</span></button>
          </div>
        )}
      </Loaded>
      {open && <One key={open.id} of={open} />}
      {other && address && (
        <div class="one-client">
          <Snippet where="Address for any client that supports streamable HTTP" text={address} label="Copy address" />
          <p class="same">For instructions per client, see <a class="link" href={href("clients")}>Clients</a>.</p>
        </div>
      )}
    </div>
  );
}

function One({ of: c }: { of: Client }) {
  const is = standing(c);
  const preview = usePreview(c, is === "connected" || is === "broken" ? null : "connect");
  if (is === "connected") {
    return <div class="one-client"><p>{c.name} is connected. {c.next && <Visible text={c.next} />} <a class="link" href={href("clients", { id: c.id })}>Permissions</a></p></div>;
  }
  return (
    <div class="one-client">
      {is === "broken" ? <>{c.broken.map((b) => <p class="error-line" key={b}><Visible text={b} /></p>)}<ByHand of={c} /></> : (
        <>
          <Written preview={preview} name={c.name} />
          <div class="row go"><ConnectButtons of={c} preview={preview} />{c.next && <span class="dim">Next: <Visible text={c.next} /></span>}</div>
        </>
      )}
    </div>
  );
}
