// Active leases: calls that run without asking for a limited time.

import { useState } from "preact/hooks";
import { api, path } from "../../api/client";
import type { LeaseView } from "../../api/types";
import { useEvents } from "../../data/live";
import { useResource } from "../../data/resource";
import { number } from "../../lib/format";
import { actorWords, byWords } from "../../lib/who";
import { Button } from "../../ui/button";
import { Lane } from "../../ui/marks";
import { Loaded } from "../../ui/parts";
import { attempt } from "../../ui/toast";
import { Left, Time } from "../../ui/values";
import { Visible } from "../../ui/words";

export function Leases() {
  const [turn, setTurn] = useState(0);
  const of = useResource("leases", async (signal) => (await api.get<{ leases: LeaseView[] }>("/leases", undefined, signal)).leases, { turn });
  useEvents((batch) => batch.some((e) => e.name === "reset" || e.name === "pending" || e.name === "config") && setTurn((n) => n + 1));
  const revoke = async (l: LeaseView) => {
    await attempt(() => api.delete(path`/leases/${l.id}`), { text: `Revoked the lease for ${whatOf(l)}` });
    of.reload();
  };
  if (of.data?.length === 0) return null;
  return (
    <section class="sec">
      <div class="top2"><h2>Leases</h2><span class="dim">calls that run without asking for a limited time</span></div>
      <Loaded of={of} title="Could not load leases">
        {(all) => (
          <table class="plain toks">
            <caption><span class="vh">Leases</span></caption>
            <thead class="vh-head"><tr><th scope="col">Calls</th><th scope="col">Calls left</th><th scope="col">Ends</th><th scope="col">Client</th><th scope="col">Lane</th><th scope="col">Granted</th><th><span class="vh">Action</span></th></tr></thead>
            <tbody>
              {all.map((l) => (
                <tr key={l.id}>
                  <td class="strong"><Visible text={whatOf(l)} /></td>
                  <td>{number(l.calls_left)} of {number(l.calls)} left</td>
                  <td>in <Left until={l.until} /></td>
                  <td>{l.client ? <>token <Visible text={l.client} /></> : "any client"}</td>
                  <td><Lane lane={l.lane} /></td>
                  <td class="dim" title={byWords(l.given_by, l.given_via)}>by {actorWords(l.given_by)}, <Time at={l.given_at} suffix /></td>
                  <td class="n"><Button kind="quiet" small decides label={`Revoke the lease for ${whatOf(l)}`} onClick={() => void revoke(l)}>Revoke</Button></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
    </section>
  );
}

/** Returns the scope of a lease: "github:create_issue", "all tools on github". */
function whatOf(l: LeaseView): string {
  return l.tools ? `${l.server}:${l.tools}` : `all tools on ${l.server}`;
}
