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

/** Why a tool cannot be called, and the action that helps. */
export const reasons: Record<string, Reason> = {
  pending_approval: { says: "needs review. Agents cannot see it.", act: "review" },
  blocked: { says: "is blocked by you. Agents cannot use it.", act: "look" },
  server_quarantined: { says: "is on a server that needs review. Agents cannot see it.", act: "server" },
  disabled_by_config: { says: "is disabled in mcp_config.json. To enable it, edit the file.", act: "" },
  disabled_by_user: { says: "is disabled.", act: "on" },
  server_disabled: { says: "is on a disabled server.", act: "server" },
  for_clients: { says: "is available only at the server's own address, to clients that support sampling or elicitation.", act: "" },
};

/** The button that helps with a locked tool. */
export function Unlock({ tool, onDone }: { tool: Pick<Tool, "name" | "server" | "tool" | "status">; onDone: () => void }) {
  switch (own(reasons, tool.status)?.act) {
    case "review": return <Button small href={href("approvals", { id: tool.name })} label={`Review ${tool.name}`}>Review</Button>;
    case "look": return <Button small href={href("approvals", { id: tool.name })} label={`View ${tool.name}`}>View</Button>;
    case "server": return tool.status === "server_quarantined"
      ? <Button small href={href("approvals", { id: tool.server })}>Review</Button>
      : <Button small href={href("servers", { id: tool.server })}>View server</Button>;
    case "on": return <Button small decides onClick={() => void switchTool(tool, true).then(onDone)}>Enable</Button>;
    default: return null;
  }
}

/** Reports whether a tool can be enabled or disabled here. */
export function switchable(t: Pick<Tool, "status">, on: boolean): boolean {
  return on ? t.status === "disabled_by_user" : t.status === undefined || t.status === "pending_approval" || t.status === "blocked";
}

/** Enables or disables a tool. */
export function switched(t: Pick<Tool, "server" | "tool">, on: boolean): Promise<unknown> {
  return api.post(on ? path`/servers/${t.server}/tools/${t.tool}/enable` : path`/servers/${t.server}/tools/${t.tool}/disable`);
}

/** Enables or disables a tool and shows a toast with Undo. */
export async function switchTool(t: Pick<Tool, "name" | "server" | "tool">, on: boolean): Promise<boolean> {
  return attempt(() => switched(t, on), { text: `${on ? "Enabled" : "Disabled"} ${t.name}`, undo: () => switched(t, !on) });
}

/** Locked tools that match: the best one, and the others on request. */
export function Locked({ tools, onDone }: { tools: readonly Tool[]; onDone: () => void }) {
  const [all, setAll] = useState(false);
  if (tools.length === 0) return null;
  return (
    <div class={all ? "locked all" : "locked"}>
      {(all ? tools : tools.slice(0, 1)).map((t) => (
        <div class="note" key={t.name}>
          <Icon name="lock" />
          <span><a href={href("tools", { id: t.name })}><ToolName server={t.server} tool={t.tool} /></a> matches, but {own(reasons, t.status)?.says ?? `cannot be called. ${t.remedy ?? ""}`}</span>
          <Unlock tool={t} onDone={onDone} />
        </div>
      ))}
      {tools.length > 1 && <Button kind="quiet" small onClick={() => setAll(!all)}>{all ? "Show only the first" : `${tools.length - 1} more locked ${tools.length === 2 ? "match" : "matches"}`}</Button>}
    </div>
  );
}
