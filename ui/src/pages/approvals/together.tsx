// Definitions in which the same was found: chosen, and blocked or approved together.

import { useState } from "preact/hooks";
import { number } from "../../lib/format";
import { Button } from "../../ui/button";
import { Confirm } from "../../ui/dialog";
import { doAll } from "../../ui/selection";
import { Subject } from "./detail";
import { Visible } from "../../ui/words";
import { decide, takeBackMany } from "./decide";
import { approvable, type Alike, type DefinitionItem, type Item } from "./model";

/** Chooses what was found in several definitions. */
export function SameFinding({ groups, found, onFound }: { groups: readonly Alike[]; found: string; onFound: (found: string) => void }) {
  return (
    <select class="field same-finding" aria-label="With the same finding" value={found} onChange={(e) => onFound(e.currentTarget.value)}>
      <option value="">Same finding: any</option>
      {groups.map((g) => <option key={g.found} value={g.found}>{number(g.count)}: {g.reason}</option>)}
      {found && !groups.some((g) => g.found === found) && <option value={found}>{found}</option>}
    </select>
  );
}

/** The bar that decides about all of them; what looks like an attack is approved one by one only. */
export function Together({ items, onDone, onBack }: { items: readonly DefinitionItem[]; onDone: (done: readonly Item[]) => void; onBack: (back: readonly Item[]) => void }) {
  const [asking, setAsking] = useState<"" | "block" | "approve">("");
  const may = items.filter(approvable);
  const run = async (all: readonly DefinitionItem[], verb: "block" | "approve") => {
    const undo = verb === "block" ? "unblock" : "withdraw";
    const word = verb === "block" ? "Blocked" : "Approved";
    onDone(await doAll(all, (i) => decide(i, verb, i.fingerprint), (n) => `${word} ${number(n)}.`, (done) => takeBackMany(done, undo).finally(() => onBack(done))));
  };
  if (items.length === 0) return null;
  const of = asking === "block" ? items : may;
  return (
    <div class="pane-foot">
      <Button small decides onClick={() => setAsking("block")}>{`Block ${number(items.length)}…`}</Button>
      {may.length > 0 && <Button small decides onClick={() => setAsking("approve")}>{`Approve ${number(may.length)}…`}</Button>}
      <span class="dim">with the same finding{may.length < items.length && "; what looks like an attack is approved one by one"}</span>
      {asking && (
        <Confirm title={`${asking === "block" ? "Block" : "Approve"} ${number(of.length)} definitions?`} action={asking === "block" ? "Block" : "Approve"} danger={asking === "block"} onConfirm={() => run(of, asking)} onClose={() => setAsking("")}>
          <p>{asking === "block" ? "No agent can use them until you unblock them." : "Agents will read what was found, as it is here. Each is approved as it is now; its next change waits again."}</p>
          <ul class="alike" tabIndex={0} aria-label="Definitions">
            {of.map((i) => <li key={i.key}><Subject target={i} />{i.findings.map((f) => <q key={f.path + f.start}><Visible text={f.excerpt} /></q>)}</li>)}
          </ul>
        </Confirm>
      )}
    </div>
  );
}
