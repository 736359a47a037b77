import { useState } from "preact/hooks";
import { api, explain } from "../../api/client";
import type { AddedFromRegistry, RegistryEntries, RegistryEntry, RegistryInput } from "../../api/types";
import { useResource } from "../../data/resource";
import { servers } from "../../data/shared";
import { ago, count } from "../../lib/format";
import { own } from "../../lib/own";
import { argvLine } from "../../lib/paste";
import { answerNotes, missing, refusal, valuesOf } from "../../lib/registry";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import { Loaded } from "../../ui/parts";
import { Visible } from "../../ui/words";

/** Finds a server in the registries, asks for its values, and adds it for review. */
export function FromRegistry({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [query, setQuery] = useState("");
  const [chosen, choose] = useState<RegistryEntry>();
  const found = useResource(query ? "registry " + query : null, (signal) => api.get<RegistryEntries>("/registry/servers", { q: query }, signal), { keep: false });
  if (chosen) return <Entry of={chosen} onBack={() => choose(undefined)} onClose={onClose} />;
  return (
    <>
      <form class="row go" role="search" onSubmit={(e) => (e.preventDefault(), setQuery(typed.trim()))}>
        <input class="field grow" type="search" aria-label="Name of a server" placeholder="A part of the name, such as filesystem" minLength={3} maxLength={100} required value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        <Button kind="main" type="submit">Search</Button>
      </form>
      {query && (
        <Loaded of={found} title="Could not ask the registries">
          {(all) => (
            <div aria-live="polite">
              {all.servers.length === 0 && <p>No server has a name with “{query}”.</p>}
              <ul class="parsed">
                {all.servers.map((e) => (
                  <li key={e.registry + e.name}>
                    <div class="grow">
                      <p><b class="strong"><Visible text={e.name} /></b> <span class="dim"><Visible text={e.version} />{e.findings.length > 0 && ` · ${count(e.findings.length, "finding")}`}</span></p>
                      {e.description && <p><Visible text={e.description} /></p>}
                      {refusal(e) && <p class="dim"><Visible text={refusal(e)} /></p>}
                    </div>
                    <Button disabled={refusal(e) !== ""} label={`Choose ${e.name}`} onClick={() => choose(e)}>Choose</Button>
                  </li>
                ))}
              </ul>
              {answerNotes(all, (t) => ago(t, new Date())).map((n) => <p key={n} class="dim"><Visible text={n} /></p>)}
            </div>
          )}
        </Loaded>
      )}
      <p class="dim">Publishers write these texts, and no one has checked them. A server from a registry waits for your review: nothing is started before.</p>
      <div class="end"><Button onClick={onClose}>Cancel</Button></div>
    </>
  );
}

function Entry({ of: e, onBack, onClose }: { of: RegistryEntry; onBack: () => void; onClose: () => void }) {
  const options = e.options.filter((o) => !o.problem);
  const [at, setAt] = useState(0);
  const [name, setName] = useState("");
  const [given, setGiven] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState("");
  const [added, setAdded] = useState<AddedFromRegistry>();
  const option = options[at]!;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || missing(option, given).length) return;
    setBusy(true);
    setFailed("");
    try {
      setAdded(await api.post<AddedFromRegistry>("/registry/add", { entry: e.name, version: e.version, registry: e.registry, option: option.id, name: name.trim(), values: valuesOf(option, given) }));
      servers.reload();
    } catch (cause) {
      const { message, hint } = explain(cause);
      setFailed([message, hint].filter(Boolean).join(" "));
    }
    setBusy(false);
  };
  if (added) {
    return (
      <>
        <p><b class="strong"><Visible text={added.server.name} /></b> waits for your review. Nothing of it was started.</p>
        {[...(added.notes ?? []), ...(added.missing ?? []).map((m) => `It needs the secret ${m}, which you can set when you approve it.`)].map((n) => <p key={n} class="dim"><Visible text={n} /></p>)}
        <div class="end"><Button onClick={onClose}>Done</Button><Button kind="main" href={href("servers", { id: added.server.name })}>Review</Button></div>
      </>
    );
  }
  return (
    <form class="dlg-form" onSubmit={submit}>
      <p><b class="strong"><Visible text={e.name} /></b> <span class="dim"><Visible text={e.version} /></span></p>
      {e.description && <p><Visible text={e.description} /></p>}
      {e.findings.map((f, i) => <p key={i} class="error-line"><Visible text={`${f.severity}: ${f.reason} “${f.excerpt}”`} /></p>)}
      {options.length > 1 && (
        <Field label="Way">{(a) => <select {...a} value={at} onChange={(x) => (setAt(Number(x.currentTarget.value)), setGiven({}))}>{options.map((o, i) => <option key={o.id} value={i}>{o.id}</option>)}</select>}</Field>
      )}
      <pre class="parse-how" tabIndex={0} aria-label="Launch"><Visible text={option.command ? argvLine(option.command) : option.url ?? ""} /></pre>
      <Field label="Name" note="Default: the last part of the name above">{(a) => <input {...a} value={name} autocomplete="off" spellcheck={false} onInput={(x) => setName(x.currentTarget.value)} />}</Field>
      {option.inputs.map((i) => <Ask key={i.name} of={i} value={own(given, i.name) ?? ""} onInput={(v) => setGiven({ ...given, [i.name]: v })} />)}
      {failed && <p class="error-line" role="alert"><Visible text={failed} /></p>}
      <div class="end"><Button onClick={onBack}>Back</Button><Button kind="main" type="submit" decides disabled={busy || missing(option, given).length > 0}>Add for review</Button></div>
    </form>
  );
}

function Ask({ of: i, value, onInput }: { of: RegistryInput; value: string; onInput: (v: string) => void }) {
  const note = [i.description, i.secret && "Stored in the keyring.", i.folder && "An absolute path of this machine.", i.repeated && "One on each line.", i.default && `Default: ${i.default}`].filter(Boolean).join(" ");
  const common = { value, autocomplete: "off", spellcheck: false };
  return (
    <Field label={i.name} required={!!i.required} {...(note ? { note: <Visible text={note} /> } : {})}>
      {(a) => i.choices?.length
        ? <select {...a} value={value} onChange={(e) => onInput(e.currentTarget.value)}><option value="">{i.default ?? ""}</option>{i.choices.map((c) => <option key={c}>{c}</option>)}</select>
        : i.repeated ? <textarea {...a} {...common} rows={2} onInput={(e) => onInput(e.currentTarget.value)} />
          : i.secret ? <input {...a} {...common} type="password" onInput={(e) => onInput(e.currentTarget.value)} />
            : <input {...a} {...common} onInput={(e) => onInput(e.currentTarget.value)} />}
    </Field>
  );
}
