// The first stage of a server's review: the launch and its origin.

import { useResource } from "../../data/resource";
import { api } from "../../api/client";
import { count } from "../../lib/format";
import { commandLine } from "../../lib/paste";
import { href } from "../../router";
import { CopyButton } from "../../ui/copy";
import { Visible } from "../../ui/words";
import type { ServerItem } from "./model";
import { Part } from "./parts";
import type { Review } from "./review";
import { short } from "./words";

export function Launch({ review, item }: { review: Review; item?: ServerItem }) {
  const l = review.launch;
  const env = review.proposed_env;
  return (
    <>
      <Part title={l.url ? "Address to connect to" : "Command to run under your account"}>
        <pre class="json cmd wrap" tabIndex={0} aria-label={l.url ? "address" : "command"}>{l.url ? <Visible text={l.url} /> : <><span class="p">$</span> <Visible text={commandLine(l)} /></>}</pre>
        <dl class="defs wide">
          {l.command && <><dt>Command</dt><dd class="mono"><Visible text={l.command} /></dd></>}
          {!!l.args?.length && <><dt>Arguments</dt><dd class="mono">{l.args.map((a, i) => <div key={i}><Visible text={a} /></div>)}</dd></>}
          {env ? <><dt>Variables</dt><dd class="mono">{Object.entries(env).map(([k, v]) => <div key={k}><Visible text={`${k}=${v}`} /></div>)}</dd></>
            : !!l.env?.length && <><dt>Variables</dt><dd class="mono">{l.env.map((k) => <div key={k}><Visible text={k} /></div>)}</dd></>}
          {!l.url && <><dt>Directory</dt><dd class={l.working_dir ? "mono" : "dim"}>{l.working_dir ? <Visible text={l.working_dir} /> : "MCPProxy's working directory"}</dd></>}
          {l.command && <><dt>Sandbox</dt><dd class={l.sandbox ? "" : "dim"}>{l.sandbox ? <Visible text={l.sandbox} /> : "none: the command has all your rights"}</dd></>}
          {!!l.headers?.length && <><dt>Headers</dt><dd class="mono">{l.headers.map((k) => <div key={k}><Visible text={k} /></div>)}</dd></>}
          <dt>Fingerprint</dt><dd class="mono"><span title={review.fingerprint}>{short(review.fingerprint)}</span> <CopyButton text={review.fingerprint} label="Copy fingerprint" /></dd>
        </dl>
      </Part>
      {(item?.client || review.proposed_by) && (
        <Part title="Proposed by">
          <dl class="defs wide">
            <dt>Agent</dt><dd><Visible text={item?.client || review.proposed_by!} /></dd>
            {item?.session && <><dt>Session</dt><dd><Session id={item.session} /></dd></>}
          </dl>
        </Part>
      )}
      <Part title="Next step"><p class="same">The server starts for review only. You review its instructions and tools before agents can use them.</p></Part>
    </>
  );
}

function Session({ id }: { id: string }) {
  const r = useResource("records of " + id, (signal) => api.get<{ total: number }>("/activity", { session_id: id, limit: 1 }, signal), { keep: false });
  return <><a class="link mono" href={href("activity", { session: id, since: "all" })}><Visible text={id} /></a>{r.data && <span class="dim"> {count(r.data.total, "record")}</span>}</>;
}
