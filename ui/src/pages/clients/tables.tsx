import { useState } from "preact/hooks";
import { number } from "../../lib/format";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { sessionName, went, type ClientUse, type Session } from "./used";

/** The clients that were seen, each with the way to its activity. */
export function ClientTable({ clients }: { clients: readonly ClientUse[] }) {
  return (
    <table class="plain seen">
      <caption><span class="vh">Clients seen in the last 24 hours</span></caption>
      <thead><tr><th scope="col">Client</th><th scope="col" class="n w-n">Sessions</th><th scope="col" class="n w-n">Calls</th><th scope="col" class="n w-n">Refused</th><th scope="col" class="n w-n">Failed</th><th scope="col" class="n w-n">Seen</th></tr></thead>
      <tbody>
        {clients.map((c) => (
          <tr key={c.raw}>
            <td><a href={href("activity", { client: c.raw || undefined })}><b class="strong"><Visible text={c.name} /></b></a> <span class="dim"><Visible text={c.versions.join(", ")} /></span></td>
            <td class="n w-n">{number(c.sessions)}</td>
            <td class="n w-n">{number(c.calls)}</td>
            <Count n={c.refused} to={href("activity", { client: c.raw || undefined, status: "blocked" })} what={`${c.name} was refused`} />
            <Count n={c.failed} to={href("activity", { client: c.raw || undefined, status: "error" })} what={`Failed calls of ${c.name}`} />
            <td class="n w-n"><Time at={c.last} class="dim" /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Count({ n, to, what }: { n: number; to: string; what: string }) {
  return <td class="n w-n">{n ? <a class="link" href={to} title={what}>{number(n)}</a> : <span class="dim">–</span>}</td>;
}

const few = 20;

/** Sessions, the newest first. */
export function Sessions({ sessions, total, more }: { sessions: readonly Session[]; total: number; /** The log has older ones that were not looked at. */ more: boolean }) {
  const [shown, setShown] = useState(few);
  return (
    <section class="sec">
      <div class="top"><h2>Sessions</h2><span class="dim">{number(total)}{more ? " and older ones" : ""} in the last 24 hours</span></div>
      <table class="plain sessions">
        <caption><span class="vh">Sessions</span></caption>
        <tbody>
          {sessions.slice(0, shown).map((s) => (
            <tr key={s.id}>
              <td class="w-id"><a class="link mono" href={href("activity", { session: s.id })}>{s.id.slice(0, 16)}</a></td>
              <td><Visible text={sessionName(s)} /></td>
              <td class="soft w-source">{s.actor === "agent" ? "agent" : s.source ?? s.actor}</td>
              <td class="soft w-went">{went(s)}</td>
              <td class="n w-n"><Time at={s.last} class="dim" /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {sessions.length > shown && <Button kind="quiet" small onClick={() => setShown(shown + 200)}>{`Show ${Math.min(200, sessions.length - shown)} more`}</Button>}
      {shown >= sessions.length && total > sessions.length && <p class="same">{number(total - sessions.length)} older ones are in the activity.</p>}
    </section>
  );
}
