import { useState } from "preact/hooks";
import { api, explain, path } from "../../api/client";
import type { ServerDetail, ToolDetail } from "../../api/types";
import { useResource } from "../../data/resource";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { DrawerPart } from "../../ui/drawer";
import { Seg } from "../../ui/field";
import { Loaded } from "../../ui/parts";
import { toast } from "../../ui/toast";
import { Visible } from "../../ui/words";
import { choicesOf, hintNames, hintRows, hintWords, override, type Choice, type Choices } from "./hints";

const yes = (v: boolean | undefined) => (v === undefined ? "–" : v ? "yes" : "no");
const from = { server: "from the server", you: "corrected by you", guess: "inferred" } as const;

/** The hints of a tool, their sources, and the dialog that corrects them. */
export function Hints({ tool, onChanged }: { tool: ToolDetail; onChanged: () => void }) {
  const [open, setOpen] = useState(false);
  const rows = hintRows(tool);
  return (
    <DrawerPart title="Hints" end={<Button kind="quiet" small decides onClick={() => setOpen(true)}>Correct…</Button>}>
      {rows.length > 0 && (
        <table class="kv hints-t">
          <caption><span class="vh">Hints of this tool</span></caption>
          <thead><tr><th scope="col">Hint</th><th scope="col">Declared</th><th scope="col">Effective</th></tr></thead>
          <tbody>{rows.map((r) => <tr key={r.name}><td>{hintWords[r.name]}</td><td class="soft">{yes(r.said)}</td><td><b class="strong">{yes(r.counts)}</b> <span class="dim">{r.from === "server" ? "" : from[r.from]}</span></td></tr>)}</tbody>
        </table>
      )}
      <Silence tool={tool} rows={rows.length} />
      {open && <Correct tool={tool} onClose={() => setOpen(false)} onChanged={onChanged} />}
    </DrawerPart>
  );
}

function Silence({ tool, rows }: { tool: ToolDetail; rows: number }) {
  if (!tool.guessed) return null;
  const reason = tool.inferred_reason ?? "";
  const seems = tool.inferred_operation;
  return (
    <p class={rows ? "same" : undefined}>
      {rows ? "No hint sets the lane. " : "The server declares no hints. "}
      <span class="soft">
        {seems && <>Looks {seems === "destructive" ? "destructive" : `like a ${seems}`}{reason && <>: <Visible text={reason} /></>}. </>}
        Lane: {tool.lane}{tool.lane === "write" ? ". A call in the read lane passes with a warning" : ""}.
      </span>
    </p>
  );
}

function Correct({ tool, onClose, onChanged }: { tool: ToolDetail; onClose: () => void; onChanged: () => void }) {
  const server = useResource(tool.server, (signal) => api.get<ServerDetail>(path`/servers/${tool.server}`, {}, signal), { keep: false });
  return (
    <Dialog title={`Correct hints of ${tool.name}`} onClose={onClose} class="correct">
      <Loaded of={server} title="Could not load the server configuration">{(s) => <Choose tool={tool} server={s} onClose={onClose} onChanged={onChanged} />}</Loaded>
    </Dialog>
  );
}

const options = [{ value: "", label: "Declared" }, { value: "true", label: "Yes" }, { value: "false", label: "No" }] as const;

function Choose({ tool, server, onClose, onChanged }: { tool: ToolDetail; server: ServerDetail; onClose: () => void; onChanged: () => void }) {
  const before = choicesOf(server.hint_overrides, tool.tool);
  const [choices, setChoices] = useState<Choices>(before);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const said = tool.declared_annotations ?? tool.annotations;
  const put = (overrides: ServerDetail["hint_overrides"] | null) => api.patch(path`/servers/${tool.server}`, { hint_overrides: overrides });
  const save = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      // Read the current overrides: they may have changed since the dialog opened.
      const { hint_overrides: old } = await api.get<ServerDetail>(path`/servers/${tool.server}`);
      await put(override(old, tool.tool, choices));
      toast({ text: `Corrected the hints of ${tool.name}`, undo: () => put(old ?? null).then(onChanged) });
      onChanged();
      onClose();
    } catch (cause) {
      const { message, hint } = explain(cause);
      setError([message, hint].filter(Boolean).join(" "));
      setBusy(false);
    }
  };
  return (
    <form class="dlg-form" onSubmit={save}>
      <p class="soft">Your values override those of the server. They are saved in the configuration for this tool only.</p>
      <table class="kv">
        <caption><span class="vh">Hints</span></caption>
        <tbody>
          {hintNames.map((n) => {
            const pattern = before[n] === "" && tool.corrected_annotations?.[n] !== undefined;
            return (
              <tr key={n}>
                <td>{hintWords[n]}<br /><small class="dim">{pattern ? `a pattern in the configuration: ${yes(tool.corrected_annotations![n])}` : `declared: ${said[n] === undefined ? "none" : yes(said[n])}`}</small></td>
                <td class="pick"><Seg<Choice> label={hintWords[n]} value={choices[n]} options={options} onChange={(v) => setChoices({ ...choices, [n]: v })} /></td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {error && <p class="error-line" role="alert">{error}</p>}
      <div class="end"><Button onClick={onClose}>Cancel</Button><Button kind="main" type="submit" decides disabled={busy || hintNames.every((n) => choices[n] === before[n])}>Save</Button></div>
    </form>
  );
}
