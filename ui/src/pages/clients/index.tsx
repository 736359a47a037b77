import { useReducer, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Client, SessionList } from "../../api/types";
import { useEvents } from "../../data/live";
import { useResource } from "../../data/resource";
import { useClients, useStatus } from "../../data/shared";
import { useActions } from "../../keys";
import { ordering, sorted } from "../../lib/order";
import { text } from "../../lib/query";
import { go, useQuery } from "../../router";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { ErrorPart, Loaded, Skeleton } from "../../ui/parts";
import { Addresses, mainAddress } from "./addresses";
import { ClientDrawer, Disconnect } from "./client";
import { Sessions } from "./sessions";
import { Leases } from "./leases";
import { ClientTable, opened, orders } from "./table";
import { NewToken, Tokens, useTokens } from "./tokens";
import { clientsOf, heading, rowsOf } from "./used";
import "./clients.css";

const gather = 5000; // ms between reloads, since sessions are counted from the log
const schema = { id: text(), sort: ordering(Object.keys(orders)) };

/** The Clients page: clients and their permissions, leases, addresses, tokens, sessions. */
export default function Clients() {
  const [q, setQ] = useQuery(schema);
  const status = useStatus();
  const known = useClients();
  const tokens = useTokens();
  const [making, setMaking] = useState(false);
  const [leaving, setLeaving] = useState<Client>();
  const [turn, again] = useReducer((n: number, _: void) => n + 1, 0);
  const timer = useRef(0);
  useEvents((batch) => {
    if (batch.some((e) => e.name === "activity" || e.name === "reset")) timer.current ||= window.setTimeout(() => ((timer.current = 0), again()), gather);
  });
  const list = useResource("sessions", (signal) => api.get<SessionList & { cut?: boolean }>("/sessions", { period: "24h", limit: 1000 }, signal), { turn });
  const all = known.data?.clients ?? [];
  const uses = list.data ? clientsOf(list.data.sessions, all) : [];
  const { rows: there, elsewhere } = rowsOf(all, uses);
  const rows = sorted(there, q.sort, orders);
  const address = mainAddress(status.data);
  const more = list.data !== undefined && (list.data.cut === true || list.data.total > list.data.sessions.length);
  const open = all.find((c) => c.id === q.id);
  const move = (by: number) => {
    const ids = rows.flatMap((r) => r.id || []);
    const at = ids.indexOf(q.id);
    const next = ids[at < 0 ? (by > 0 ? 0 : -1) : at + by];
    if (next) setQ({ id: next }, { replace: at >= 0 });
  };
  useActions([{ key: "j", run: () => move(1) }, { key: "k", run: () => move(-1) }, { key: "n", label: "New token", icon: "key", run: () => setMaking(true) }]);
  return (
    <div class={open ? "page fill who at-record" : "page fill who"}>
      <div class={open ? "split open full" : "split full"}>
        <div class="log">
          <div class="log-head pad">
            <div class="head">
              <div>
                <h1>{list.data ? heading(uses.length, more) : "Clients"}</h1>
                <p class="lead one">
                  {known.data && rows.length === 0 ? <>No clients found on this machine. Connect one to this address: {address && <><code>{address}</code><CopyButton label="Copy address" text={address} /></>}</> : "What each client runs without asking, by lane, from its configuration files."}
                </p>
              </div>
              <div class="acts"><Button cap="n" decides onClick={() => setMaking(true)}>New token</Button></div>
            </div>
          </div>
          {list.error !== undefined && !list.data && <ErrorPart title="Could not load sessions" error={list.error} onRetry={list.reload} />}
          <Loaded of={known} title="Could not load clients" skeleton={<div class="page nopt"><Skeleton lines={6} /></div>}>
            {() => rows.length > 0 && <ClientTable rows={rows} open={q.id} order={q.sort} onOrder={(sort) => setQ({ sort })} onDisconnect={setLeaving} />}
          </Loaded>
          <div class="page nopt">
            {elsewhere.length > 0 && <Elsewhere clients={elsewhere} open={q.id} />}
            <Leases />
            {status.data && <Addresses status={status.data} />}
            <Tokens of={tokens} />
            {list.data && list.data.sessions.length > 0 && <Sessions sessions={list.data.sessions} known={all} total={list.data.total} more={list.data.cut === true} />}
          </div>
        </div>
        {open && (
          <ClientDrawer key={open.id} of={open} use={rows.find((r) => r.id === open.id)?.use} changes={known.data!.changes.filter((c) => c.client === open.id)}
            onMove={rows.some((r) => r.id === open.id) ? move : undefined} onClose={() => setQ({ id: "" })} onDisconnect={setLeaving} />
        )}
      </div>
      {making && <NewToken onClose={() => setMaking(false)} onMade={tokens.reload} />}
      {leaving && <Disconnect of={leaving} onClose={() => setLeaving(undefined)} />}
    </div>
  );
}

/** Supported clients that were not found on this machine. */
function Elsewhere({ clients, open }: { clients: readonly Client[]; open: string }) {
  return (
    <section class="sec elsewhere">
      <div class="top2"><h2>Other clients</h2><span class="dim">supported, but not found on this machine</span></div>
      <div class="chips">{clients.map((c) => <button type="button" class="chip" key={c.id} aria-pressed={c.id === open} onClick={() => go(opened(c.id))}>{c.name}</button>)}</div>
    </section>
  );
}
