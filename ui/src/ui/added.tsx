// Servers that were just added, with their live state.

import { useServers } from "../data/shared";
import { count } from "../lib/format";
import { href } from "../router";
import { Icon } from "./icon";
import { serverState, State } from "./marks";
import type { Added } from "./paste";
import { Visible } from "./words";
import "./parse-box.css";

/** The added servers, which replace the pasted text. */
export function AddedList({ added }: { added: readonly Added[] }) {
  const { data = [] } = useServers();
  return (
    <ul class="added" aria-live="polite">
      {added.map((a) => {
        const s = data.find((x) => x.name === a.name);
        if (a.error) return <li key={a.name}><Icon name="err" small /><span class="grow"><b class="strong"><Visible text={a.name} /></b> was not added. <Visible text={[a.error.message, a.error.hint].filter(Boolean).join(" ")} /></span></li>;
        const state = s && serverState(s);
        return (
          <li key={a.name}>
            <a class="strong cut grow" href={href("servers", { id: a.name })}><Visible text={a.name} /></a>
            {s && s.state === "ready" && !s.quarantined && <span class="soft">{count(s.tool_count, "tool")}, {s.waiting ? <a class="link" href={href("approvals")}>{s.waiting} to review</a> : "clean"}</span>}
            {state ? <State kind={state.kind}>{s.state === "connecting" || s.state === "stopped" ? (s.step ?? "starting") : state.word}</State> : <State kind="moving">starting</State>}
          </li>
        );
      })}
    </ul>
  );
}
