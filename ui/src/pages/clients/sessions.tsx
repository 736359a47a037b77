import { useState } from "preact/hooks";
import type { Client } from "../../api/types";
import { number } from "../../lib/format";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { sessionName, went, type Session } from "./used";

const few = 20;

/** Sessions, the newest first. */
export function Sessions({ sessions, known, total, more }: { sessions: readonly Session[]; known: readonly Client[]; total: number; /** The log has older ones that were not counted. */ more: boolean }) {
  const [shown, setShown] = useState(few);
  return (
    <section class="sec">
      <div class="top2"><h2>Sessions</h2><span class="dim">{number(total)}{more ? "+" : ""} in the last 24 hours</span></div>
      <table class="plain sessions">
        <caption><span class="vh">Sessions</span></caption>
        <tbody>
          {sessions.slice(0, shown).map((s) => (
            <tr key={s.id}>
              <td class="w-id"><a class="link mono" href={href("activity", { session: s.id })}>{s.id.slice(0, 16)}</a></td>
              <td><Visible text={sessionName(s, known)} /></td>
              <td class="soft w-source">{s.actor === "agent" ? "agent" : s.actor ?? s.source}</td>
              <td class="soft w-went">{went(s)}</td>
              <td class="n w-seen"><Time at={s.last} class="dim" /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {sessions.length > shown && <Button kind="quiet" small onClick={() => setShown(shown + 200)}>{`Show ${Math.min(200, sessions.length - shown)} more`}</Button>}
      {shown >= sessions.length && total > sessions.length && <p class="same">{number(total - sessions.length)} older sessions are in Activity.</p>}
    </section>
  );
}
