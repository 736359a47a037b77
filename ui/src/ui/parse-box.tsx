// Where servers are pasted: JSON of any client, a command, a URL. What would be added
// stands below with its whole command, since adding is the approval of exactly that.

import { useId } from "preact/hooks";
import { explain } from "../api/client";
import type { Parsed } from "../api/types";
import { commandLine, secretKey } from "../lib/paste";
import { Icon } from "./icon";
import type { Paste, Pasted } from "./paste";
import { Visible } from "./words";
import "./parse-box.css";

const example = '{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "…"] } } }\n\nnpx -y @modelcontextprotocol/server-filesystem ~/code\n\nhttps://mcp.example.com/mcp';

/** The field and what was read of it. of is the state of usePaste; the button is the caller's: of.count and of.add. */
export function ParseBox({ of, rows = 9, label = "Paste any client’s JSON", onSubmit }: { of: Paste; rows?: number; label?: string; /** Ctrl Enter in the field. */ onSubmit?: () => void }) {
  const id = useId();
  return (
    <div class="parse-box">
      <h3><label for={id}>{label}</label><small>or a command, or a URL</small></h3>
      <textarea class="field mono" id={id} rows={rows} wrap="off" spellcheck={false} autocomplete="off" placeholder={example} value={of.text}
        onInput={(e) => of.setText(e.currentTarget.value)}
        onKeyDown={(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && (e.preventDefault(), onSubmit?.())} />
      <div aria-live="polite" class={of.busy && of.parsed ? "parse-old" : undefined}>{of.text.trim() !== "" && <Read of={of} />}</div>
    </div>
  );
}

function Read({ of }: { of: Paste }) {
  if (of.error !== undefined) {
    const { message, hint } = explain(of.error);
    return <p class="error-line" role="alert">{message} {hint}</p>;
  }
  if (!of.parsed) return null;
  const nothing = of.servers.length === 0 && of.parsed.mistakes.length === 0 && of.parsed.notes.length === 0;
  return (
    <ul class="parsed">
      {of.servers.map((s, i) => <One key={i} of={s} />)}
      {of.parsed.mistakes.map((m, i) => <Mistake key={`m${i}`} of={m} />)}
      {of.parsed.notes.map((n) => <li key={n}><Icon name="block" small /><span><Visible text={n} /></span></li>)}
      {nothing && <li class="warn"><Icon name="err" small /><span>There is no server in this text.</span></li>}
    </ul>
  );
}

function Mistake({ of: m }: { of: Parsed["mistakes"][number] }) {
  return (
    <li class="warn">
      <Icon name="err" small />
      <span>{m.line > 0 && <b class="strong num">Line {m.line}: </b>}<Visible text={m.message} />{m.hint && <span class="dim"> <Visible text={m.hint} /></span>}</span>
    </li>
  );
}

function One({ of: { server: s, name, choice, trouble, choose } }: { of: Pasted }) {
  const id = useId();
  const { env = [], headers = [], working_dir: directory } = s.launch;
  const takes = [env.length ? `env ${env.join(", ")}` : "", headers.length ? `headers ${headers.join(", ")}` : "", directory ? `in ${directory}` : ""].filter(Boolean);
  const renamed = s.exists || choice.name !== undefined || trouble !== "";
  return (
    <li class={choice.skip ? "skipped" : undefined}>
      <input type="checkbox" checked={!choice.skip} aria-label={`Add ${s.name}`} onChange={(e) => choose({ skip: !e.currentTarget.checked })} />
      <div class="grow">
        <p><b class="strong"><Visible text={name} /></b> <span class="dim">{s.launch.url ? "reached at" : "started with"}</span></p>
        <pre class="parse-how" tabIndex={0} aria-label={`How ${s.name} is started`}><Visible text={commandLine(s.launch)} /></pre>
        {takes.length > 0 && <p class="dim"><Visible text={takes.join(" · ")} /></p>}
        {renamed && !choice.skip && (
          <div class="parse-name">
            <label for={id}>Name</label>
            <input class="field" id={id} value={name} autocomplete="off" spellcheck={false} aria-invalid={trouble ? "true" : undefined} aria-describedby={trouble ? id + "-why" : undefined} onInput={(e) => choose({ name: e.currentTarget.value.trim() })} />
            {trouble && <p class="field-note bad" id={id + "-why"}>{trouble}</p>}
          </div>
        )}
        {s.secrets.map((x) => <Secret key={secretKey(x)} server={s.name} of={x} hidden={!!choice.hidden?.includes(secretKey(x))} onHide={(on) => choose({ hidden: on ? [...(choice.hidden ?? []), secretKey(x)] : (choice.hidden ?? []).filter((k) => k !== secretKey(x)) })} />)}
        {s.notes.map((n) => <p key={n} class="dim"><Visible text={n} /></p>)}
      </div>
    </li>
  );
}

// Until a keyring can take it, a reference needs the variable where MCPProxy is started; so it is offered, not done.
function Secret({ of: s, server, hidden, onHide }: { of: Pasted["server"]["secrets"][number]; server: string; hidden: boolean; onHide: (on: boolean) => void }) {
  const what = s.place === "args" ? `Argument ${Number(s.name) + 1}` : s.place === "url" ? "The URL" : s.name;
  const kind = s.kind === "secret" ? "a secret" : `a ${s.kind}`;
  const variable = /\$\{env:([^}]+)\}/.exec(s.suggestion)?.[1] ?? "";
  return (
    <div class="parse-secret">
      <Icon name="lock" small />
      <div>
        <p><b class="strong"><Visible text={what} /></b> looks like {kind}. {hidden ? <>The file gets a reference; set <code><Visible text={variable} /></code> where MCPProxy is started.</> : "It would stand in the file as you pasted it."}</p>
        <label><input type="checkbox" checked={hidden} aria-label={`Write ${s.suggestion} instead, in ${server}`} onChange={(e) => onHide(e.currentTarget.checked)} />Write <code><Visible text={s.suggestion} /></code> instead</label>
      </div>
    </div>
  );
}
