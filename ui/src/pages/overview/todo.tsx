import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Summary } from "../../api/types";
import { useResource } from "../../data/resource";
import { count } from "../../lib/format";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { ToolName } from "../../ui/marks";
import { SecretDialog } from "../../ui/secrets";
import { AnswerTime, Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { isCall, useTurn } from "./live";
import type { Bit, Need } from "./needs";

/** What needs attention; the first row has the primary action. */
export function Todo({ needs }: { needs: readonly Need[] }) {
  const [secrets, setSecrets] = useState<string>();
  return (
    <>
      <ul class="todo" aria-label="Needs attention">
        {needs.map((n, i) => (
          <li key={n.key}>
            <span class={n.hot ? "mark hot" : "mark"}><Icon name={n.icon} /></span>
            <div class="what">
              <div class="strong"><Line bits={n.title} /></div>
              <p class="cut2"><Line bits={n.text} />{n.tool && <RefusedSince need={n} />}</p>
            </div>
            <span class="when">{n.call ? <AnswerTime call={n.call} /> : n.since && <Time at={n.since} />}</span>
            <Button small {...(n.act.secrets === undefined ? { href: n.act.href } : { decides: true, onClick: () => setSecrets(n.act.secrets) })} {...(i === 0 ? { kind: "main" as const } : {})}>{n.act.label}<span class="vh">: <Line bits={n.title} /></span></Button>
          </li>
        ))}
      </ul>
      {secrets !== undefined && <SecretDialog {...(secrets ? { server: secrets } : {})} onClose={() => setSecrets(undefined)} />}
    </>
  );
}

function Line({ bits }: { bits: readonly Bit[] }) {
  return (
    <>
      {bits.map((b, i) => {
        if (typeof b === "string") return <Visible key={i} text={b} />;
        if ("code" in b) return <code key={i}><Visible text={b.code} /></code>;
        return b.tool === undefined ? <span class="tool" key={i}>{b.server}</span> : <ToolName key={i} server={b.server} tool={b.tool} />;
      })}
    </>
  );
}

// How many calls were refused since the definition is under review.
function RefusedSince({ need }: { need: Need }) {
  const name = need.title.find((b) => typeof b === "object" && "server" in b) as { server: string; tool: string } | undefined;
  const turn = useTurn(isCall, 5000);
  const refused = useResource<Summary>(
    name && need.since ? `refused ${need.key} ${need.since}` : null,
    (signal) => api.get("/activity/summary", { server: name!.server, tool: name!.tool, start_time: need.since, step: "24h" }, signal),
    { turn },
  );
  const total = refused.data?.refused ?? 0;
  if (!name || total === 0) return null;
  return <> <a class="link" href={href("activity", { tool: `${name.server}:${name.tool}`, status: "blocked", type: "policy_decision", since: need.since })}>{count(total, "call")} refused</a> since.</>;
}
