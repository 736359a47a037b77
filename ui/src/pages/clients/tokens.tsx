// Agent tokens: the list, creating and revoking.

import { useState } from "preact/hooks";
import { api, explain, path } from "../../api/client";
import type { CreatedToken, Lane as LaneName, ProfileView, TokenView } from "../../api/types";
import { now } from "../../data/now";
import { useResource, type Resource } from "../../data/resource";
import { clients, useServers } from "../../data/shared";
import { each } from "../../data/each";
import { count, date, exact } from "../../lib/format";
import { sorted, type Order, type Value } from "../../lib/order";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { Confirm, Dialog } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { Head, Tick, type HeadOf } from "../../ui/head";
import { Lane, Tag } from "../../ui/marks";
import { Loaded } from "../../ui/parts";
import { Selected, useSelection } from "../../ui/selection";
import { toast } from "../../ui/toast";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { bodyOf, lanes, lives, newLanes, serverNames, tokenTrouble } from "./token";

/** Returns the tokens; they reload with the clients, since connecting can create one. */
export const useTokens = () => useResource("tokens", (signal) => api.get<{ tokens: TokenView[] }>("/tokens", undefined, signal), { turn: clients.state.value.at?.getTime() });

const heads: readonly HeadOf[] = [
  { key: "name", head: "Name", order: "ascending" }, { key: "reaches", head: "Access", order: "ascending" }, { key: "lanes", head: "Lanes", order: "ascending" },
  { key: "until", head: "Expires", order: "ascending" }, { key: "used", head: "Last used", order: "descending" }, { key: "action", head: <span class="vh">Action</span> },
];
const keyOf = (t: TokenView) => t.name;

export function Tokens({ of }: { of: Resource<{ tokens: TokenView[] }> }) {
  const [revoking, revoke] = useState<readonly TokenView[]>([]);
  const [order, setOrder] = useState<Order>("");
  const selection = useSelection(of.data?.tokens ?? [], keyOf, keyOf);
  const all = revoking.length > 1 ? count(revoking.length, "token") : (revoking[0]?.name ?? "");
  return (
    <section class="sec">
      <div class="top2"><h2>Tokens</h2><span class="dim">for programs and restricted clients; shown once, stored as a hash</span></div>
      <Selected count={selection.rows.length} onClear={selection.clear}><Button small decides onClick={() => revoke(selection.rows)}>{`Revoke ${selection.rows.length}…`}</Button></Selected>
      <Loaded of={of} title="Could not load tokens">
        {({ tokens }) => (tokens.length === 0 ? <p class="same">No tokens yet. Clients on this machine can use every server without one. A token limits a client to a profile, servers or lanes.</p> : (
          <table class="plain toks">
            <caption><span class="vh">Tokens</span></caption>
            <thead><tr><th class="c-tick"><Tick name="Select all" on={selection.all} some={selection.rows.length > 0} onChange={selection.pickAll} /></th>{heads.map((h) => <Head key={h.key} of={h} order={order} onOrder={setOrder} />)}</tr></thead>
            <tbody>
              {sorted(tokens, order, orders).map((t) => (
                <tr key={t.name} class={selection.picked.has(t.name) ? "picked" : undefined}>
                  <td class="c-tick"><Tick name={`Select ${t.name}`} on={selection.picked.has(t.name)} onChange={() => selection.pick(t)} /></td>
                  <td class="strong"><Visible text={t.name} />{t.answers && <> <span title={answers}><Tag>answers</Tag></span><span class="vh">{answers}</span></>}</td>
                  <td title={reaches(t)}><Visible text={reaches(t)} />{t.warning && <> <span title={t.warning}><Tag kind="warm">warning</Tag></span><span class="vh"><Visible text={t.warning} /></span></>}</td>
                  <td>{t.lanes?.join(", ") || "all"}</td>
                  <td>{t.expired ? <span class="state bad">expired</span> : t.expires_at ? <time dateTime={t.expires_at} title={exact(t.expires_at)}>{date(new Date(t.expires_at), now.value)}</time> : "never"}</td>
                  <td class="dim">{t.last_used_at ? <Time at={t.last_used_at} suffix /> : "never used"}</td>
                  <td class="n"><Button kind="quiet" small decides label={`Revoke ${t.name}…`} onClick={() => revoke([t])}>Revoke…</Button></td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      </Loaded>
      {revoking.length > 0 && (
        <Confirm title={`Revoke ${all}?`} action="Revoke" onClose={() => revoke([])}
          onConfirm={async () => {
            const { done, problems } = await each(revoking, (t) => api.delete(path`/tokens/${t.name}`), 1);
            of.reload();
            if (problems.length) throw new Error(problems[0]);
            toast({ text: done.length > 1 ? `Revoked ${count(done.length, "token")}` : `Revoked ${all}` });
          }}>
          {revoking.length > 1 && <p>{revoking.map((t) => t.name).join(", ")}</p>}
          {revoking.length > 1 ? "The tokens stop working, and their" : "The token stops working, and its"} sessions end. This cannot be undone.
        </Confirm>
      )}
    </section>
  );
}

const orders: Readonly<Record<string, (t: TokenView) => Value>> = {
  name: (t) => t.name, reaches, lanes: (t) => t.lanes?.join(", ") || "all", until: (t) => t.expires_at, used: (t) => t.last_used_at,
};

const answers = "The client with this token can approve pending calls (ask.answer_by_client).";

/** Returns the access of a token: "profile research", "github, git", "all servers". */
function reaches(t: TokenView): string {
  const parts = [t.profile && `profile ${t.profile}`, t.servers?.length && t.servers.join(", ")].filter(Boolean);
  return parts.join(": ") || "all servers";
}

/** Creates a token and shows it once. */
export function NewToken({ onClose, onMade }: { onClose: () => void; onMade: () => void }) {
  const [made, setMade] = useState<CreatedToken>();
  return made ? <Made of={made} onClose={onClose} /> : <Form onClose={onClose} onMade={(t) => (setMade(t), onMade())} />;
}

function Form({ onClose, onMade }: { onClose: () => void; onMade: (t: CreatedToken) => void }) {
  const profiles = useResource("profiles", (signal) => api.get<{ profiles: ProfileView[] }>("/profiles", undefined, signal));
  const servers = useServers();
  const [name, setName] = useState("");
  const [profile, setProfile] = useState("");
  const [only, setOnly] = useState("");
  const [may, setMay] = useState<readonly LaneName[]>(newLanes);
  const [life, setLife] = useState("30d");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const trouble = tokenTrouble(name, may);
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy || trouble) return;
    setBusy(true);
    try {
      onMade(await api.post<CreatedToken>("/tokens", bodyOf({ name, profile, servers: only, lanes: may, life })));
    } catch (cause) {
      const { message, hint } = explain(cause);
      setError([message, hint].filter(Boolean).join(" "));
      setBusy(false);
    }
  };
  const unknown = serverNames(only).filter((n) => !n.includes("*") && servers.data && !servers.data.some((s) => s.name === n));
  return (
    <Dialog title="New token" onClose={onClose}>
      <form class="dlg-form" onSubmit={submit}>
        <Field label="Name" required note="Calls are recorded under this name.">{(a) => <input {...a} class="field mono" value={name} placeholder="ci-nightly" autocomplete="off" spellcheck={false} required onInput={(e) => setName(e.currentTarget.value.trim())} />}</Field>
        {!!profiles.data?.profiles.length && (
          <Field label="Profile">
            {(a) => <select {...a} value={profile} onChange={(e) => setProfile(e.currentTarget.value)}><option value="">none (all servers)</option>{profiles.data!.profiles.map((p) => <option key={p.name} value={p.name}>{p.name}</option>)}</select>}
          </Field>
        )}
        <Field label="Servers" note={unknown.length ? `No server named ${unknown.join(", ")}.` : "Names or patterns such as web-*, separated by commas. Empty: all."}>
          {(a) => <input {...a} class="field mono" value={only} placeholder={servers.data?.slice(0, 2).map((s) => s.name).join(", ") || "github, git"} autocomplete="off" spellcheck={false} onInput={(e) => setOnly(e.currentTarget.value)} />}
        </Field>
        <fieldset class="lanes-of">
          <legend class="lab">Lanes</legend>
          {lanes.map((l) => <label class="row" key={l}><input type="checkbox" checked={may.includes(l)} onChange={(e) => setMay(e.currentTarget.checked ? lanes.filter((x) => x === l || may.includes(x)) : may.filter((x) => x !== l))} /><Lane lane={l} /></label>)}
        </fieldset>
        <Field label="Expires after">{(a) => <select {...a} value={life} onChange={(e) => setLife(e.currentTarget.value)}>{lives.map(([value, word]) => <option key={value} value={value}>{word}</option>)}</select>}</Field>
        {error && <p class="error-line" role="alert">{error}</p>}
        <div class="end"><Button onClick={onClose}>Cancel</Button><Button kind="main" type="submit" decides disabled={busy || !!trouble} title={trouble}>Create token</Button></div>
      </form>
    </Dialog>
  );
}

function Made({ of: t, onClose }: { of: CreatedToken; onClose: () => void }) {
  return (
    <Dialog title={`Token ${t.name}`} onClose={onClose}>
      <p>Copy the token now. It is not shown again.</p>
      <div class="say token"><code tabIndex={0} role="group" aria-label="Token">{t.token}</code><CopyButton text={t.token} label="Copy token" /></div>
      <p class="soft">Clients send it as <code>Authorization: Bearer …</code>. For <code>mcpproxy stdio</code>, set <code>MCPPROXY_TOKEN</code>.</p>
      {t.warning && <p class="remark"><Visible text={t.warning} /></p>}
      <div class="end"><Button kind="main" onClick={onClose}>Done</Button></div>
    </Dialog>
  );
}
