import { useState } from "preact/hooks";
import { useStatus } from "../../data/shared";
import { count } from "../../lib/format";
import { AddedList } from "../../ui/added";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { anyFound, FoundList, useFound } from "../../ui/found";
import { ParseBox } from "../../ui/parse-box";
import { Seg } from "../../ui/field";
import { usePaste, type Added } from "../../ui/paste";
import { FromRegistry } from "./registry";

/** The dialog that adds pasted servers or one of a registry, and then shows their state. */
export function AddDialog({ onClose }: { onClose: () => void }) {
  const paste = usePaste();
  const found = useFound({ paste, ticked: false });
  const total = paste.count + found.count;
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const [added, setAdded] = useState<Added[]>();
  const [from, setFrom] = useState<"paste" | "registry">("paste");
  const choice = <Seg label="Where the server comes from" value={from} onChange={setFrom} options={[{ value: "paste", label: "Paste" }, { value: "registry", label: "Registry" }]} />;
  const add = async () => {
    if (busy || total === 0) return;
    setBusy(true);
    const pasted = await paste.add();
    setAdded([...pasted, ...(await found.add())]);
    setBusy(false);
  };
  if (added) {
    const well = added.filter((a) => !a.error).length;
    return (
      <Dialog title={well === added.length ? `${count(well, "server")} added` : `${well} of ${count(added.length, "server")} added`} onClose={onClose} class="add-dialog">
        <AddedList added={added} />
        <div class="end"><Button onClick={() => (setAdded(undefined), paste.setText(""))}>Add more</Button><Button kind="main" onClick={onClose}>Done</Button></div>
      </Dialog>
    );
  }
  if (from === "registry") return <Dialog title="Add server" onClose={onClose} class="add-dialog"><p>{choice}</p><FromRegistry onClose={onClose} /></Dialog>;
  return (
    <Dialog title="Add server" onClose={onClose} class="add-dialog">
      <p>{choice}</p>
      <ParseBox of={paste} rows={8} onSubmit={add} />
      {anyFound(found) && <FoundList of={found} />}
      <p class="dim">{total > 0 ? "Adding approves exactly the launches above. The servers start, and their definitions are scanned." : <>You see each command here before it runs.{status.data && <> Servers are saved in <code>{status.data.config_path}</code>.</>}</>}</p>
      <div class="end">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="main" decides cap="Ctrl ⏎" disabled={busy || total === 0} onClick={add}>{total === 0 ? "Add" : `Add ${count(total, "server")}`}</Button>
      </div>
    </Dialog>
  );
}
