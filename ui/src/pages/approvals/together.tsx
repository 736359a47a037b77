// Definitions with the same finding: selected, and blocked or approved together.

import { useState } from "preact/hooks";
import { number } from "../../lib/format";
import { Button } from "../../ui/button";
import { Confirm } from "../../ui/dialog";
import { doAll } from "../../ui/selection";
import { Subject } from "./detail";
import { Visible } from "../../ui/words";
import { decide, takeBackMany } from "./decide";
import { approvable, type Alike, type DefinitionItem, type Item } from "./model";

/** Selects a finding that several definitions share. */
export function SameFinding({ groups, found, onFound }: { groups: readonly Alike[]; found: string; onFound: (found: string) => void }) {
  return (
    <select class="field same-finding" aria-label="Filter by finding" value={found} onChange={(e) => onFound(e.currentTarget.value)}>
      <option value="">Any finding</option>
      {groups.map((g) => <option key={g.found} value={g.found}>{number(g.count)}: {g.reason}</option>)}
      {found && !groups.some((g) => g.found === found) && <option value={found}>{found}</option>}
    </select>
  );
}

/** The bar with the actions for all of them. Likely attacks are approved one by one. */
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
      <span class="dim">with the same finding{may.length < items.length && "; likely attacks are approved one by one"}</span>
      {asking && (
        <Confirm title={`${asking === "block" ? "Block" : "Approve"} ${number(of.length)} definitions?`} action={asking === "block" ? "Block" : "Approve"} danger={asking === "block"} onConfirm={() => run(of, asking)} onClose={() => setAsking("")}>
          <p>{asking === "block" ? "Agents cannot use them until you unblock them." : "Agents will read the marked text. The approval covers only the current definitions. Later changes need a new review."}</p>
          <ul class="alike" tabIndex={0} aria-label="Definitions">
            {of.map((i) => <li key={i.key}><Subject target={i} />{i.findings.map((f) => <q key={f.path + f.start}><Visible text={f.excerpt} /></q>)}</li>)}
          </ul>
        </Confirm>
      )}
    </div>
  );
}
