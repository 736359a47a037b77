import { useState } from "preact/hooks";
import { api, path } from "../../api/client";
import type { Tool } from "../../api/types";
import { own } from "../../lib/own";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { ToolName } from "../../ui/marks";
import { attempt } from "../../ui/toast";

interface Reason { says: string; act: "review" | "look" | "server" | "on" | "" }

/** Why a tool cannot be called, and what there is to do. */
export const reasons: Record<string, Reason> = {
  pending_approval: { says: "waits for your review. Agents do not see it.", act: "review" },
  blocked: { says: "is blocked by you. No agent can use it.", act: "look" },
  server_quarantined: { says: "is of a server that waits for your review. Agents do not see it.", act: "server" },
  disabled_by_config: { says: "is off in the file. Only who edits mcp_config.json can change it.", act: "" },
  disabled_by_user: { says: "was switched off by you.", act: "on" },
  server_disabled: { says: "is of a server that is off.", act: "server" },
  for_clients: { says: "is only for clients that can be asked something, at the server's own address.", act: "" },
};

/** The one button that leads on from a locked tool. */
export function Unlock({ tool, onDone }: { tool: Pick<Tool, "name" | "server" | "tool" | "status">; onDone: () => void }) {
  switch (own(reasons, tool.status)?.act) {
    case "review": return <Button small href={href("approvals", { id: tool.name })} label={`Review ${tool.name}`}>Review</Button>;
    case "look": return <Button small href={href("approvals", { id: tool.name })} label={`Look at ${tool.name}`}>Look</Button>;
    case "server": return tool.status === "server_quarantined"
      ? <Button small href={href("approvals", { id: tool.server })}>Review</Button>
      : <Button small href={href("servers", { id: tool.server })}>Server</Button>;
    case "on": return <Button small decides onClick={() => void switchTool(tool, true).then(onDone)}>Switch on</Button>;
    default: return null;
  }
}

/** Reports whether a person can switch a tool on or off here. */
export function switchable(t: Pick<Tool, "status">, on: boolean): boolean {
  return on ? t.status === "disabled_by_user" : t.status === undefined || t.status === "pending_approval" || t.status === "blocked";
}

/** Switches a tool on or off. */
export function switched(t: Pick<Tool, "server" | "tool">, on: boolean): Promise<unknown> {
  return api.post(on ? path`/servers/${t.server}/tools/${t.tool}/enable` : path`/servers/${t.server}/tools/${t.tool}/disable`);
}

/** Switches a tool on or off and tells; it can be undone. */
export async function switchTool(t: Pick<Tool, "name" | "server" | "tool">, on: boolean): Promise<boolean> {
  return attempt(() => switched(t, on), { text: `Switched ${on ? "on" : "off"} ${t.name}`, undo: () => switched(t, !on) });
}

/** What fits, though it is locked: the best one, the others when asked for. */
export function Locked({ tools, onDone }: { tools: readonly Tool[]; onDone: () => void }) {
  const [all, setAll] = useState(false);
  if (tools.length === 0) return null;
  return (
    <div class={all ? "locked all" : "locked"}>
      {(all ? tools : tools.slice(0, 1)).map((t) => (
        <div class="note" key={t.name}>
          <Icon name="lock" />
          <span><a href={href("tools", { id: t.name })}><ToolName server={t.server} tool={t.tool} /></a> fits, but {own(reasons, t.status)?.says ?? `cannot be called. ${t.remedy ?? ""}`}</span>
          <Unlock tool={t} onDone={onDone} />
        </div>
      ))}
      {tools.length > 1 && <Button kind="quiet" small onClick={() => setAll(!all)}>{all ? "Only the first" : `${tools.length - 1} more fit, but are locked`}</Button>}
    </div>
  );
}
