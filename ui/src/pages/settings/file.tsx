// The file next to the form: changes, text, history, and the save bar.

import { api, path } from "../../api/client";
import type { Bound, Config, ConfigVersion } from "../../api/types";
import { count } from "../../lib/format";
import { useActions } from "../../keys";
import { Button } from "../../ui/button";
import { Seg } from "../../ui/field";
import { Empty, ErrorPart } from "../../ui/parts";
import { attempt, toast } from "../../ui/toast";
import { Conflict } from "./conflict";
import { Difference } from "./difference";
import type { Drafting } from "./draft";
import { Editor, Mistakes } from "./editor";
import { History } from "./history";
import { changeCount, effect } from "./model";

export const views = ["", "difference", "file", "history"] as const;
export type View = (typeof views)[number];

const tabs = [{ value: "difference", label: "Changes" }, { value: "file", label: "File" }, { value: "history", label: "History" }] as const;

export function File({ file, of, view, id, turn, onView }: { file: Config; of: Drafting; view: View; id: string; turn: unknown; onView: (v: View) => void }) {
  // By default: the changes if there are any, or else the file.
  const at = view || (of.draft ? "difference" : "file");
  const edit = (text: string) => {
    of.edit(text);
    if (view === "") onView("file"); // otherwise the changes would replace it while the user types
  };
  const putBack = (text: string) => {
    of.edit(text);
    onView("difference");
  };
  return (
    <aside class="drawer" aria-label="Configuration file">
      <header><div class="row"><h2 class="grow cut" title={file.path}>{file.path}</h2><Seg tiny label="File view" value={at} options={tabs} onChange={onView} /></div></header>
      <div class="body flush">
        {of.conflict && at !== "history" ? <Conflict file={file} of={of} />
          : at === "file" ? <Editor text={of.text} mistakes={of.mistakes} onEdit={edit} />
            : at === "history" ? <History file={file} id={id} turn={turn} onPutBack={putBack} />
              : !of.draft ? <NoDifference file={file} of={of} onPutBack={putBack} onView={onView} />
                : <>
                    {of.mistakes.length > 0 && <section class="mistakes" aria-label="Errors"><h3>{count(of.mistakes.length, "error")}</h3><Mistakes of={of.mistakes} /></section>}
                    <Difference was={of.draft.base.text} is={of.text} label="Your changes" />
                  </>}
        {of.error !== undefined && !of.conflict && <ErrorPart title="Could not validate the changes" error={of.error} onRetry={() => of.rebase()} />}
      </div>
      {of.draft && !of.conflict && <SaveBar of={of} />}
    </aside>
  );
}

// No draft; an invalid file can be fixed.
function NoDifference({ file, of, onPutBack, onView }: { file: Config; of: Drafting; onPutBack: (text: string) => void; onView: (v: View) => void }) {
  if (!file.error) return <Empty title="No changes">Your edits in the form or the file appear here before you save them.</Empty>;
  const inForce = () => attempt(async () => {
    const { versions } = await api.get<Bound & { versions: ConfigVersion[] }>("/config/history", { limit: 1 });
    const newest = versions[0];
    if (newest?.etag !== file.in_force_etag) return toast({ text: "The active version is not in the history. Fix the file instead." });
    onPutBack((await api.get<{ text: string }>(path`/config/history/${newest.id}`)).text);
  });
  return (
    <div class="refused">
      <Empty title="The file has errors" acts={<><Button kind="main" onClick={() => onView("file")}>Fix file</Button><Button onClick={inForce}>Restore active version</Button></>}>{of.mistakes.length === 0 && file.error}</Empty>
      {of.mistakes.length > 0 && <section class="mistakes" aria-label="Errors"><Mistakes of={of.mistakes} /></section>}
    </div>
  );
}

function SaveBar({ of }: { of: Drafting }) {
  const n = changeCount(of.draft, of.validation);
  const ready = !of.saving && of.validation?.ok !== false;
  useActions([
    { key: "Ctrl+s", label: "Save settings", icon: "save", when: true, run: () => void of.save() },
    { label: "Discard changes to settings", icon: "close", run: of.discard },
  ]);
  const v = of.validation;
  return (
    <footer>
      <Button kind="main" decides cap="Ctrl S" disabled={!ready} onClick={() => void of.save()}>{of.saving ? "Saving…" : n > 0 ? `Save ${count(n, "change")}` : "Save file"}</Button>
      <Button kind="quiet" onClick={of.discard}>Discard</Button>
      <span class="dim end2" role="status">{!v || of.busy ? "" : v.ok ? [effect(v), ...v.warnings].join(". ") : `Cannot save: ${count(v.mistakes.length, "error")}`}</span>
    </footer>
  );
}
