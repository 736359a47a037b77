// Servers of clients on this machine that can be imported.

import { useMemo, useState } from "preact/hooks";
import { api, explain } from "../api/client";
import type { Importable, Imported } from "../api/types";
import { useResource, type Resource } from "../data/resource";
import { clients, servers, useServers } from "../data/shared";
import { short } from "../lib/clients";
import { count } from "../lib/format";
import { byFile, marks, tally, type Mark } from "../lib/found";
import { own } from "../lib/own";
import { commandLine, takes } from "../lib/paste";
import { Icon } from "./icon";
import { ErrorPart } from "./parts";
import type { Added, Paste } from "./paste";
import { Visible } from "./words";
import "./found.css";

export interface Found {
  list: Resource<Importable>;
  marks: readonly Mark[];
  picked: ReadonlySet<string>;
  pick: (id: string, on: boolean) => void;
  /** Move plain-text secrets to the keyring. */
  keyring: boolean;
  setKeyring: (on: boolean) => void;
  /** Remove imported servers from the client's file. */
  remove: boolean;
  setRemove: (on: boolean) => void;
  failed: Readonly<Record<string, string>>;
  /** The number of selected servers. */
  count: number;
  /** Imports them; it never throws: failed ones have an error. */
  add: () => Promise<Added[]>;
}

/** Returns the state of the list of found servers, of all clients or of one; ticked: servers without problems are selected by default. */
export function useFound({ paste, ticked, client }: { paste?: Paste; ticked: boolean; client?: string }): Found {
  const turn = useServers().data?.length; // servers that exist already are not listed
  const list = useResource("found", (signal) => api.get<Importable>("/clients/servers", undefined, signal), { turn });
  const [choices, setChoices] = useState<Record<string, boolean>>({});
  const [keyring, setKeyring] = useState(true);
  const [remove, setRemove] = useState(false);
  const [failed, setFailed] = useState<Record<string, string>>({});
  const lines = paste?.servers.filter((s) => !s.choice.skip).map((s) => commandLine(s.server.launch)).join("\n") ?? "";
  const all = useMemo(() => marks((list.data?.found ?? []).filter((f) => !client || f.client === client), lines.split("\n")), [list.data, lines, client]);
  const picked = useMemo(() => new Set(all.filter((m) => !m.have && (own(choices, m.server.id) ?? (ticked && !lines && !m.why && !m.again))).map((m) => m.server.id)), [all, choices, ticked, lines]);
  return {
    list, marks: all, picked, keyring, setKeyring, remove, setRemove, failed, count: picked.size,
    pick: (id, on) => setChoices((c) => ({ ...c, [id]: on })),
    add: async () => {
      const ids = [...picked];
      const name = (id: string) => all.find((m) => m.server.id === id)!.server.name;
      if (!ids.length) return [];
      try {
        const { results } = await api.post<{ results: Imported[] }>("/servers/import", { ids, keyring, remove, confirmed: true, dry_run: false });
        setFailed(Object.fromEntries(results.flatMap((r) => (r.problem ? [[r.id, [r.problem.message, r.problem.hint].filter(Boolean).join(" ")]] : []))));
        return results.map((r) => ({ name: r.name || name(r.id), ...(r.problem ? { error: { message: r.problem.message, hint: r.problem.hint ?? "" } } : {}) }));
      } catch (error) {
        const { message, hint } = explain(error);
        setFailed(Object.fromEntries(ids.map((id) => [id, [message, hint].filter(Boolean).join(" ")])));
        return ids.map((id) => ({ name: name(id), error: { message, hint } }));
      } finally {
        servers.reload();
        clients.reload();
        list.reload();
      }
    },
  };
}

/** Reports whether there is anything to show: new servers, unreadable files, or an error. */
export function anyFound(of: Found): boolean {
  return of.marks.some((m) => !m.have) || (of.list.data?.broken.length ?? 0) > 0 || of.list.error !== undefined;
}

/** The found servers by file, each with its full command: importing approves exactly that. */
export function FoundList({ of, bare = false }: { of: Found; /** Without the heading and the errors of other files. */ bare?: boolean }) {
  if (of.list.error !== undefined && !of.list.data) return <ErrorPart title="Could not read client files" error={of.list.error} onRetry={of.list.reload} />;
  const secrets = of.marks.filter((m) => of.picked.has(m.server.id)).reduce((n, m) => n + m.server.secrets.length, 0);
  return (
    <div class="found-box">
      {!bare && <h3>Found on this machine<small>{of.list.data && tally(of.list.data)}</small></h3>}
      <ul class="found">
        {byFile(of.marks).map((g) => (
          <li class="group" key={g.name + g.path}>
            <p class="from"><b>{g.name}</b> <span class="mono" title={g.path}><Visible text={short(g.path)} /></span></p>
            {g.marks.every((m) => m.have) ? <p class="none dim">{count(g.marks.length, "server")}, already added</p> : <ul>{g.marks.map((m) => <One key={m.server.id} of={m} found={of} />)}</ul>}
          </li>
        ))}
        {!bare && of.list.data?.broken.map((b) => <li class="remark" key={b.path}><Icon name="err" small /><span><span class="mono"><Visible text={short(b.path)} /></span> is unreadable: <Visible text={b.message} /></span></li>)}
      </ul>
      {of.count > 0 && (
        <div class="found-how">
          {secrets > 0 && <label><input type="checkbox" checked={of.keyring} onChange={(e) => of.setKeyring(e.currentTarget.checked)} /><span>Move {secrets === 1 ? "the secret" : `${secrets} secrets`} to the keyring</span></label>}
          <label><input type="checkbox" checked={of.remove} onChange={(e) => of.setRemove(e.currentTarget.checked)} /><span>Remove {of.count === 1 ? "it" : "them"} from the clients’ files, so that nothing runs twice. You can undo this under Clients.</span></label>
        </div>
      )}
    </div>
  );
}

function One({ of: { server: s, why, have }, found }: { of: Mark; found: Found }) {
  const more = [...takes(s.launch), ...(s.secrets.length ? [`${count(s.secrets.length, "secret")} in plain text`] : []), ...(s.called !== s.name ? [`renamed to ${s.name}`] : [])];
  const failed = own(found.failed, s.id);
  return (
    <li>
      <input type="checkbox" aria-label={`${s.called} of ${s.client_name}`} checked={found.picked.has(s.id)} disabled={have} onChange={(e) => found.pick(s.id, e.currentTarget.checked)} />
      <span class="strong"><Visible text={s.called} /></span>
      <span class="how">
        <Visible text={commandLine(s.launch)} />
        {why && <span class="more">{why}</span>}
        {more.length > 0 && <span class="more"><Visible text={more.join(" · ")} /></span>}
        {s.notes.map((n) => <span class="more" key={n}><Visible text={n} /></span>)}
        {failed && <span class="error-line" role="alert"><Visible text={failed} /></span>}
      </span>
    </li>
  );
}
