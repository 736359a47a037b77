import type { ParsedServer, Server, Waiting } from "../../../api/types";
import { href } from "../../../router";
import { Button } from "../../../ui/button";
import { Icon } from "../../../ui/icon";
import { State } from "../../../ui/marks";
import { ErrorPart } from "../../../ui/parts";
import { Visible } from "../../../ui/words";
import { commandLine, secretKey } from "../../../lib/paste";
import { progress } from "./model";
import type { ParsedText } from "./parsed";

export interface Failure { name: string; message: string }

/** What the text says: each command whole, since the button approves exactly these. */
export function ToAdd({ parsed, servers, referenced, onReferenced, failures }: {
  parsed: ParsedText; servers: readonly Server[]; referenced: ReadonlySet<string>; onReferenced: (keys: ReadonlySet<string>) => void; failures: readonly Failure[];
}) {
  if (parsed.error !== undefined) return <ErrorPart title="The text cannot be read" error={parsed.error} onRetry={parsed.reload} />;
  const p = parsed.data;
  if (!p) return servers.length ? null : <><h3>What would be started<small>nothing yet</small></h3><p class="same">The servers of the text, each with its whole command, appear here while you type.</p></>;
  const toggle = (key: string) => {
    const next = new Set(referenced);
    if (!next.delete(key)) next.add(key);
    onReferenced(next);
  };
  return (
    <>
      {p.servers.length > 0 && <h3>What would be started<small>{p.servers.length === 1 ? "one server" : `${p.servers.length} servers`}</small></h3>}
      <ul class="launches">
        {p.servers.map((s) => {
          const failure = failures.find((f) => f.name === s.name)?.message;
          const there = s.exists || servers.some((is) => is.name === s.name);
          return (
            <li key={s.name}>
              <div class="row"><b class="strong"><Visible text={s.name} /></b>{there && <span class="dim">there is one of this name, it stays</span>}</div>
              <code class="launch"><Visible text={commandLine(s.launch)} /></code>
              <More of={s} />
              {s.secrets.map((secret) => {
                const key = keyIn(s.name, secret);
                const on = referenced.has(key);
                return (
                  <p class="note" key={key}>
                    <Icon name="lock" small />
                    <span>
                      {on ? <>The file gets <code>{secret.suggestion}</code>: set it where MCPProxy is started.</> : <>{place(secret)} looks like a secret ({secret.kind}) and would stand in the file. Better: <code><Visible text={secret.suggestion} /></code></>}
                      {" "}<Button small onClick={() => toggle(key)}>{on ? "Write it as it is" : "Use that"}</Button>
                    </span>
                  </p>
                );
              })}
              {s.notes.map((n) => <p class="remark" key={n}><Icon name="err" small /><span><Visible text={n} /></span></p>)}
              {failure && <p class="remark bad" role="alert"><Icon name="err" small /><span><Visible text={failure} /></span></p>}
            </li>
          );
        })}
      </ul>
      <ul class="mistakes" aria-live="polite">
        {p.mistakes.map((m, i) => <li class="remark bad" key={i}><Icon name="err" small /><span>{m.line > 0 && <b class="strong">Line {m.line}: </b>}<Visible text={[m.message, m.hint].filter(Boolean).join(" ")} /></span></li>)}
        {p.notes.map((n) => <li class="remark" key={n}><Icon name="check" small /><span><Visible text={n} /></span></li>)}
      </ul>
    </>
  );
}

/** The name of a secret among all of a text. */
export const keyIn = (server: string, s: ParsedServer["secrets"][number]) => `${server} ${secretKey(s)}`;

function place(s: ParsedServer["secrets"][number]): string {
  if (s.place === "args") return `Argument ${Number(s.name) + 1}`;
  return s.place === "url" ? "The address" : s.name;
}

function More({ of: s }: { of: ParsedServer }) {
  const { env, headers, working_dir: dir } = s.launch;
  const parts = [env?.length && `with ${env.join(", ")}`, headers?.length && `with the headers ${headers.join(", ")}`, dir && `in ${dir}`].filter(Boolean);
  return parts.length ? <p class="dim"><Visible text={parts.join(", ")} /></p> : null;
}

/** The servers that there are, and how far each is. */
export function Added({ servers, waiting }: { servers: readonly Server[]; waiting: Waiting | undefined }) {
  if (!servers.length) return null;
  return (
    <>
      <h3 class="added">Servers</h3>
      <ul class="launches" aria-label="Servers that were added">
        {servers.map((s) => {
          const p = progress(s, waiting);
          return (
            <li key={s.name}>
              <div class="row"><a class="strong" href={href("servers", { id: s.name })}><Visible text={s.name} /></a><span class="end"><State kind={p.kind}>{p.word}</State></span></div>
              {p.why && <code class="launch bad"><Visible text={p.why} /></code>}
            </li>
          );
        })}
      </ul>
    </>
  );
}
