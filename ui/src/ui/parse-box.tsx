// The field to paste servers: JSON of any client, a command, a URL. The servers to add
// are below with their full commands, since adding approves exactly those.

import { useId } from "preact/hooks";
import { explain } from "../api/client";
import type { Parsed } from "../api/types";
import { commandLine, secretKey, takes, type Kept } from "../lib/paste";
import { Icon } from "./icon";
import type { Paste, Pasted } from "./paste";
import { Visible } from "./words";
import "./parse-box.css";

const example = '{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "…"] } } }\n\nnpx -y @modelcontextprotocol/server-filesystem ~/code\n\nhttps://mcp.example.com/mcp';

/** The field and the parsed servers. of is the state of usePaste; the caller has the button: of.count and of.add. */
export function ParseBox({ of, rows = 9, label = "Paste client JSON", onSubmit }: { of: Paste; rows?: number; label?: string; /** Ctrl Enter in the field. */ onSubmit?: () => void }) {
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
      {nothing && <li class="warn"><Icon name="err" small /><span>No server found in this text.</span></li>}
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

function One({ of: { server: s, name, choice, kept, trouble, failed, choose } }: { of: Pasted }) {
  const id = useId();
  const more = takes(s.launch);
  const renamed = s.exists || choice.name !== undefined || trouble !== "";
  const plain = choice.plain ?? [];
  return (
    <li class={choice.skip ? "skipped" : undefined}>
      <input type="checkbox" checked={!choice.skip} aria-label={`Add ${s.name}`} onChange={(e) => choose({ skip: !e.currentTarget.checked })} />
      <div class="grow">
        <p><b class="strong"><Visible text={name} /></b> <span class="dim">{choice.skip && choice.done ? "added, " : ""}{s.launch.url ? "URL" : "command"}</span></p>
        <pre class="parse-how" tabIndex={0} aria-label={`Launch of ${s.name}`}><Visible text={commandLine(s.launch)} /></pre>
        {more.length > 0 && <p class="dim"><Visible text={more.join(" · ")} /></p>}
        {renamed && !choice.skip && (
          <div class="parse-name">
            <label for={id}>Name</label>
            <input class="field" id={id} value={name} autocomplete="off" spellcheck={false} aria-invalid={trouble ? "true" : undefined} aria-describedby={trouble ? id + "-why" : undefined} onInput={(e) => choose({ name: e.currentTarget.value.trim() })} />
            {trouble && <p class="field-note bad" id={id + "-why"}>{trouble}</p>}
          </div>
        )}
        {!choice.skip && s.secrets.map((x) => {
          const key = secretKey(x);
          return <Secret key={key} server={s.name} of={x} kept={kept.get(key)} plain={plain.includes(key)} onPlain={(on) => choose({ plain: on ? [...plain, key] : plain.filter((k) => k !== key) })} />;
        })}
        {s.notes.map((n) => <p key={n} class="dim"><Visible text={n} /></p>)}
        {failed && <p class="error-line" role="alert"><Visible text={failed} /></p>}
      </div>
    </li>
  );
}

// Plain-text secrets go into the keyring unless the user wants them in the file.
function Secret({ of: s, server, kept, plain, onPlain }: { of: Pasted["server"]["secrets"][number]; server: string; kept?: Kept; plain: boolean; onPlain: (on: boolean) => void }) {
  const what = s.place === "args" ? `Argument ${Number(s.name) + 1}` : s.place === "url" ? "The URL" : s.name;
  const kind = s.kind === "secret" ? "a secret" : `a ${s.kind}`;
  return (
    <div class={kept ? "parse-secret good" : "parse-secret"}>
      <Icon name="lock" small />
      <div>
        <p><b class="strong"><Visible text={what} /></b> looks like {kind}. {kept ? <>Stored in your keyring; the file gets <code><Visible text={kept.text} /></code>.</> : "It would be stored in the file in plain text."}</p>
        {kept || plain
          ? <label><input type="checkbox" checked={!plain} aria-label={`Store ${what} of ${server} in the keyring`} onChange={(e) => onPlain(!e.currentTarget.checked)} />Store in keyring</label>
          : <p class="dim">Instead, use <code><Visible text={s.suggestion} /></code> and set it in MCPProxy’s environment.</p>}
      </div>
    </div>
  );
}
