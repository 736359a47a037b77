import { api, path } from "../../api/client";
import type { ToolDetail } from "../../api/types";
import { offline } from "../../api/connection";
import { href } from "../../router";
import { copy } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { Menu } from "../../ui/menu";
import { attempt, toast } from "../../ui/toast";

/** The menu of a tool. */
export function ToolMenu({ tool: t, onChanged }: { tool: ToolDetail; onChanged: () => void }) {
  const trust = t.trust;
  const decide = (what: "approve" | "block" | "unblock" | "withdraw", fingerprint: string) => api.post(path`/servers/${t.server}/tools/${t.tool}/` + what, { fingerprint });
  const back = trust?.approved === trust?.fingerprint ? "approve" : "unblock";
  const act = (what: "block" | "unblock" | "withdraw", fingerprint: string, text: string) =>
    void attempt(() => decide(what, fingerprint), { text, ...(what === "block" || back === "approve" ? { undo: () => decide(back, fingerprint).then(onChanged) } : {}) }).then(onChanged);
  const link = async () => (await copy(location.origin + href("tools", { id: t.name }))) && toast({ text: "Link copied" });
  return (
    <Menu end name={`More for ${t.name}`} class="btn quiet sm ico" label={<Icon name="dots" />}>
      <a role="menuitem" href={href("approvals", { id: t.name })}>{t.status === "pending_approval" ? "Review definition" : "View definition"}</a>
      <a role="menuitem" href={href("activity", { tool: t.name })}>View activity</a>
      <a role="menuitem" href={href("servers", { id: t.server })}>View server</a>
      <button type="button" role="menuitem" onClick={() => void link()}>Copy link</button>
      {trust && <hr />}
      {trust?.approved && <button type="button" role="menuitem" disabled={offline.value} onClick={() => act("withdraw", trust.approved!, `Revoked the approval of ${t.name}. It needs review again.`)}>Revoke approval</button>}
      {trust && trust.reason !== "blocked" && <button type="button" role="menuitem" disabled={offline.value} onClick={() => act("block", trust.fingerprint, `Blocked ${t.name}`)}>Block definition</button>}
      {trust?.reason === "blocked" && <button type="button" role="menuitem" disabled={offline.value} onClick={() => act("unblock", trust.fingerprint, `Unblocked ${t.name}. It needs review again.`)}>Unblock definition</button>}
    </Menu>
  );
}
