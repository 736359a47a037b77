// The drawer of a client: its connection, its permissions, and the changes to its files.

import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Change, Client, Outcome, PermissionLane, ProfileView, Surface } from "../../api/types";
import { useResource, type Resource } from "../../data/resource";
import { laneOf, placeOf, profileOf, short, standing, verdictWords } from "../../lib/clients";
import { number } from "../../lib/format";
import { own } from "../../lib/own";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { ByHand, ConnectButtons, perform, undo, usePreview, Written, type Connection } from "../../ui/connect";
import { copy } from "../../ui/copy";
import { Confirm } from "../../ui/dialog";
import { Drawer, DrawerPart } from "../../ui/drawer";
import { Field } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Lane } from "../../ui/marks";
import { attempt } from "../../ui/toast";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { Own } from "./own";
import { StandingOf } from "./table";
import type { ClientUse } from "./used";

export function ClientDrawer({ of: c, use, changes, onMove, onClose, onDisconnect }: {
  of: Client; use?: ClientUse; changes: readonly Change[]; onMove?: (by: number) => void; onClose: () => void; onDisconnect: (c: Client) => void;
}) {
  const [connection, setConnection] = useState<Connection>({});
  const is = standing(c);
  const connected = is === "connected";
  // A token is created once, so the fields are reset.
  useEffect(() => setConnection({}), [connected, c.surface]);
  const p = c.permissions;
  const connects = is !== "broken" && (!connected || !!connection.surface);
  const rules = connected && !connects && !!p?.writable && !p.right;
  const entry = usePreview(c, connects ? "connect" : null, connection);
  const permissions = usePreview(c, rules ? "permissions" : null);
  return (
    <Drawer label={connected ? c.name : `Connect ${c.name}`} class="client" title={<span class="sans">{connected ? c.name : `Connect ${c.name}`}</span>} meta={<How of={c} />} onMove={onMove} onClose={onClose}
      footer={<Footer of={c} entry={connects ? entry : undefined} permissions={rules ? permissions : undefined} connection={connection} onDisconnect={onDisconnect} />}>
      {c.broken.length > 0 && <DrawerPart title="Unreadable files">{c.broken.map((b) => <p class="error-line" key={b}><Visible text={b} /></p>)}</DrawerPart>}
      {is !== "broken" && c.surface !== "server" && <SurfaceChoice of={c} value={connection} onChange={setConnection} />}
      {connects && <Written preview={entry} name={c.name} />}
      {connects && <Restrict id={c.id} value={connection} onChange={setConnection} />}
      {p && is !== "broken" && !connection.surface && <Permissions of={c} />}
      {rules && <Written preview={permissions} title="Permission changes" name={c.name} />}
      {c.next && <DrawerPart title="Next step"><p><Visible text={c.next} /></p></DrawerPart>}
      <Own of={c} />
      {use && <DrawerPart title="Last 24 hours"><Did of={use} /></DrawerPart>}
      {!connected && !connection.surface && <DrawerPart title="Manual setup"><ByHand of={c} /></DrawerPart>}
      {changes.length > 0 && <DrawerPart title="File changes"><Changes of={changes} /></DrawerPart>}
    </Drawer>
  );
}

const sees: Record<Surface, string> = {
  search: "It sees six tools that search and call.", lanes: "It sees every tool by name, with an entry for each lane.", all: "It sees every tool by name.", server: "It sees one server.",
};

const surfaces: { value: Surface; label: string }[] = [
  { value: "search", label: "six tools that search and call" }, { value: "lanes", label: "every tool by name, an entry for each lane" }, { value: "all", label: "every tool by name, one entry" },
];

const why: Record<Surface, string> = {
  search: "Few tokens, also with hundreds of tools. Best for clients that load all definitions at the start.",
  lanes: "Reads, writes and destructive calls have entries of their own, so the client can permit reads as a whole. Best for clients that search tools themselves.",
  all: "All definitions count against the client’s context. Best with few tools.",
  server: "",
};

/** What the client sees of the tools. Without a choice: the recommended surface, or that of a connected client. */
function SurfaceChoice({ of: c, value, onChange }: { of: Client; value: Connection; onChange: (n: Connection) => void }) {
  const connected = standing(c) === "connected";
  const choose = (surface: Surface) => {
    const { surface: _, ...rest } = value;
    const profile = value.profile ?? profileOf(c); // a connected client keeps its profile
    onChange(surface !== c.surface ? { ...rest, surface, ...(profile ? { profile } : {}) } : connected ? {} : rest);
  };
  return (
    <DrawerPart title="Surface">
      <Field label="The client sees" note={why[value.surface ?? c.surface]}>
        {(a) => (
          <select {...a} value={value.surface ?? c.surface} onChange={(e) => choose(e.currentTarget.value as Surface)}>
            {surfaces.map((s) => <option key={s.value} value={s.value}>{s.label}{s.value === c.surface ? ` (${connected ? "now" : "recommended"})` : ""}</option>)}
          </select>
        )}
      </Field>
    </DrawerPart>
  );
}

function How({ of: c }: { of: Client }) {
  const lead = c.leads_to && <code><Visible text={c.leads_to} /></code>;
  switch (standing(c)) {
    case "connected": return <><StandingOf of={c} />{lead && <>, {c.transport === "stdio" ? "runs" : "calls"} {lead}</>}{c.servers.join() !== "mcpproxy" && <> as <b class="strong"><Visible text={c.servers.join(", ")} /></b></>}. {sees[c.surface]}</>;
    case "foreign": return <><StandingOf of={c} />: {lead}. Connecting changes the entry <b class="strong"><Visible text={c.server} /></b> to MCPProxy.</>;
    case "missing": return <><StandingOf of={c} />: <code><Visible text={c.missing!} /></code>. Connecting again fixes the path.</>;
    case "broken": return <StandingOf of={c} />;
    case "not": return <>{c.transport === "stdio" ? <>Runs <code>mcpproxy stdio</code>, since it only supports commands.</> : <>Connects to the address of MCPProxy.</>}{!c.found && <> Not found on this machine.</>}</>;
  }
}

function Footer({ of: c, entry, permissions, connection, onDisconnect }: { of: Client; entry?: Resource<Outcome>; permissions?: Resource<Outcome>; connection: Connection; onDisconnect: (c: Client) => void }) {
  const [busy, setBusy] = useState(false);
  const write = async () => {
    setBusy(true);
    await perform(c, "permissions");
    setBusy(false);
  };
  const is = standing(c);
  if (is === "broken") return <Button onClick={() => void copy(c.entry.text)}>Copy entry</Button>;
  return (
    <>
      {entry && <ConnectButtons of={c} preview={entry} connection={connection} />}
      {permissions && <Button kind="main" decides disabled={busy || !permissions.data?.changed} onClick={write}>Write permissions</Button>}
      {is !== "not" && is !== "foreign" && <Button decides onClick={() => onDisconnect(c)}>Disconnect…</Button>}
    </>
  );
}

/** A profile or a token that restricts a client. */
function Restrict({ id, value, onChange }: { id: string; value: Connection; onChange: (n: Connection) => void }) {
  const profiles = useResource("profiles", (signal) => api.get<{ profiles: ProfileView[] }>("/profiles", undefined, signal));
  const set = (patch: Connection) => onChange(Object.fromEntries(Object.entries({ ...value, ...patch }).filter(([, v]) => v)));
  return (
    <details class="less">
      <summary>Restrict access</summary>
      <div class="less-fields">
        <Field label="Profile" note={profiles.data?.profiles.length === 0 ? "The configuration has no profiles." : "Limits what the client sees. Add a token to enforce the limit at the main address, too."}>
          {(a) => (
            <select {...a} value={value.profile ?? ""} disabled={!profiles.data?.profiles.length} onChange={(e) => set({ profile: e.currentTarget.value })}>
              <option value="">none (all servers)</option>
              {profiles.data?.profiles.map((p) => <option key={p.name} value={p.name}>{p.name}</option>)}
            </select>
          )}
        </Field>
        <Field label="Token name" note="Creates a token and writes it to the client’s file, if only you can read the file. Empty: no token.">
          {(a) => <input {...a} class="field mono" placeholder={id} value={value.token ?? ""} autocomplete="off" spellcheck={false} onChange={(e) => set({ token: e.currentTarget.value.trim() })} />}
        </Field>
      </div>
    </details>
  );
}

/** The permission of each lane and the rule that decides it; a rule for all lanes is shown once. */
function Permissions({ of: c }: { of: Client }) {
  const p = c.permissions!;
  const lanes = (["read", "write", "destructive"] as const).flatMap((lane) => laneOf(c, lane) ?? []);
  const one = new Set(lanes.map((l) => JSON.stringify([l.rule, l.why]))).size === 1;
  const rest = p.lanes.filter((l) => !l.right && !lanes.includes(l));
  return (
    <DrawerPart title={standing(c) === "connected" ? "Permissions" : "Permissions after connecting"}>
      <table class="kv asks">
        <caption><span class="vh">Lanes</span></caption>
        <tbody>
          {(["read", "write", "destructive"] as const).map((lane) => {
            const l = laneOf(c, lane);
            return (
              <tr key={lane}>
                <td><Lane lane={lane} /></td>
                <td>
                  {l ? verdictWords[l.verdict] : "unknown"}{l && !l.right && <span class="better">, should {l.wanted === "runs" ? "run" : "ask"}</span>}
                  {l && !one && <Decides of={l} />}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {one && <div class="same"><Decides of={lanes[0]!} /></div>}
      {rest.length > 0 && lanes.every((l) => l.right) && <p class="same">Other tools with wrong permissions: {rest.map((l) => `${l.tool} ${verdictWords[l.verdict]}`).join(", ")}.</p>}
      {p.by_hand && <p class="remark"><Icon name="settings" small /><span><Visible text={p.by_hand} /></span></p>}
      {p.notes?.map((n) => <p class="same" key={n}><Visible text={n} /></p>)}
      {p.basis === "unverified" && <p class="same">This client does not document its permissions. Check once that it asks before a write.</p>}
    </DrawerPart>
  );
}

function Decides({ of: l }: { of: PermissionLane }) {
  return (
    <>
      <p class="dim"><Visible text={l.rule.text} />{l.rule.path && <> in <span class="mono" title={l.rule.path}><Visible text={placeOf(l.rule)} /></span></>}</p>
      {l.why && <p class="dim"><Visible text={l.why} /></p>}
    </>
  );
}

function Did({ of: u }: { of: ClientUse }) {
  const client = u.raw || undefined;
  return (
    <p>
      <a class="link" href={href("activity", { client, since: "24h" })}>{number(u.calls)} {u.calls === 1 ? "call" : "calls"}</a>
      {u.refused > 0 && <>, <a class="link" href={href("activity", { client, status: "blocked", since: "24h" })}>{number(u.refused)} refused</a></>}
      {u.failed > 0 && <>, <a class="link" href={href("activity", { client, status: "error", since: "24h" })}>{number(u.failed)} failed</a></>}
      <span class="dim">, last <Time at={u.last} suffix /></span>
    </p>
  );
}

const did: Record<Change["what"], string> = { connect: "connected", disconnect: "disconnected", permissions: "permissions written", import: "servers imported" };

function Changes({ of }: { of: readonly Change[] }) {
  return (
    <ul class="changes">
      {of.map((c) => (
        <li key={c.id}>
          <span class="grow">{own(did, c.what) ?? c.what}{c.undone && <span class="dim">, undone</span>} <span class="dim mono"><Visible text={short(c.path)} /></span></span>
          <Time at={c.at} class="dim" />
          {c.undoable && !c.undone && <Button kind="quiet" small decides label={`Undo: ${own(did, c.what) ?? c.what}`} onClick={() => void attempt(() => undo(c.id), { text: "File restored" })}>Undo</Button>}
        </li>
      ))}
    </ul>
  );
}

/** Confirms disconnecting a client. */
export function Disconnect({ of: c, onClose }: { of: Client; onClose: () => void }) {
  const preview = usePreview(c, "disconnect");
  return (
    <Confirm title={`Disconnect ${c.name}?`} action="Disconnect" danger={false} onClose={onClose} onConfirm={() => perform(c, "disconnect").then(() => undefined)}>
      <p>The client can no longer use the servers of MCPProxy. You can undo this.</p>
      <Written preview={preview} name={c.name} />
    </Confirm>
  );
}
