import { useState } from "preact/hooks";
import type { Client } from "../../../api/types";
import { useClients, useStatus } from "../../../data/shared";
import { standing, type Standing } from "../../../lib/clients";
import { href } from "../../../router";
import { ByHand, ConnectButtons, Snippet, usePreview, Written } from "../../../ui/connect";
import { Loaded } from "../../../ui/parts";
import { Visible } from "../../../ui/words";

const another = "another";

const how: Record<Standing, string> = { connected: "connected", not: "found, not connected", foreign: "leads to something else", missing: "what it starts is gone", broken: "its file cannot be read" };

/** Step 2: what is written into which client, for those that are on this machine. */
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
      <p>One entry in its file, shown before it is written, with a backup and an undo.</p>
      <Loaded of={known} title="The clients cannot be read">
        {() => (
          <div class="clients by-hand" role="group" aria-label="Clients">
            {here.map((c) => <button type="button" key={c.id} aria-pressed={c.id === picked} onClick={() => pick(c.id)}><b>{c.name}</b><span>{how[standing(c)]}</span></button>)}
            <button type="button" aria-pressed={other} onClick={() => pick(another)}><b>Another</b><span>copy the address</span></button>
          </div>
        )}
      </Loaded>
      {open && <One key={open.id} of={open} />}
      {other && address && (
        <div class="one-client">
          <Snippet where="Any client that speaks MCP over streamable HTTP takes this address" text={address} label="Copy the address" />
          <p class="same">What to write for each that is known stands under <a class="link" href={href("clients")}>Clients</a>.</p>
        </div>
      )}
    </div>
  );
}

function One({ of: c }: { of: Client }) {
  const is = standing(c);
  const preview = usePreview(c, is === "connected" || is === "broken" ? null : "connect");
  if (is === "connected") {
    return <div class="one-client"><p>{c.name} is connected. {c.next && <Visible text={c.next} />} <a class="link" href={href("clients", { id: c.id })}>What it asks you</a></p></div>;
  }
  return (
    <div class="one-client">
      {is === "broken" ? <>{c.broken.map((b) => <p class="error-line" key={b}><Visible text={b} /></p>)}<ByHand of={c} /></> : (
        <>
          <Written preview={preview} name={c.name} />
          <div class="row go"><ConnectButtons of={c} preview={preview} />{c.next && <span class="dim">Then: <Visible text={c.next} /></span>}</div>
        </>
      )}
    </div>
  );
}
