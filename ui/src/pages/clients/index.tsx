import { useReducer, useRef } from "preact/hooks";
import { api } from "../../api/client";
import type { SessionList } from "../../api/types";
import { useEvents } from "../../data/live";
import { useResource } from "../../data/resource";
import { useStatus } from "../../data/shared";
import { CopyButton } from "../../ui/copy";
import { Loaded } from "../../ui/parts";
import { Addresses, mainAddress } from "./addresses";
import { Connect } from "./connect";
import { ClientTable, Sessions } from "./tables";
import { clientsOf, heading } from "./used";
import "./clients.css";

const gather = 5000; // ms: sessions are counted from the log

/** Who uses MCPProxy, and how does a client come to it? */
export default function Clients() {
  const status = useStatus();
  const [turn, again] = useReducer((n: number, _: void) => n + 1, 0);
  const timer = useRef(0);
  useEvents((batch) => {
    if (batch.some((e) => e.name === "activity" || e.name === "reset")) timer.current ||= window.setTimeout(() => ((timer.current = 0), again()), gather);
  });
  const list = useResource("sessions", (signal) => api.get<SessionList & { cut?: boolean }>("/sessions", { period: "24h", limit: 1000 }, signal), { turn });
  const address = mainAddress(status.data);
  const clients = list.data ? clientsOf(list.data.sessions) : undefined;
  const more = list.data !== undefined && (list.data.cut === true || list.data.total > list.data.sessions.length);
  return (
    <div class="page who">
      <h1>{clients ? heading(clients.length, more) : "Clients"}</h1>
      {clients?.length === 0
        ? <p class="lead one">Point a client at this address: {address && <><code>{address}</code><CopyButton label="Copy the address" text={address} /></>}</p>
        : <p class="lead">Each finds and calls the same tools. What they did in the last 24 hours, by the log.</p>}
      <Loaded of={list} title="The sessions cannot be read">{() => clients!.length > 0 && <ClientTable clients={clients!} />}</Loaded>
      {status.data && <Addresses status={status.data} />}
      <Connect address={address} />
      {list.data && list.data.sessions.length > 0 && <Sessions sessions={list.data.sessions} total={list.data.total} more={list.data.cut === true} />}
    </div>
  );
}
