import { Fragment } from "preact";
import { caps } from "../keys";
import { singleKeys } from "../data/prefs";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";

// The keys of all pages: the list tells what exists, also where it does not act now.
const list: [keys: string, does: string][] = [
  ["Ctrl+k", "Search, or run a command"],
  ["g o", "Overview; then p approvals, a activity, t tools, s servers, c clients, comma settings"],
  ["/", "Into the search of the page"],
  ["f", "Add a filter"],
  ["j k", "Next, previous"],
  ["Enter", "Open"],
  ["Escape", "Close; focus returns to where it was"],
  ["a", "Approve"],
  ["x", "Block"],
  ["k", "Keep destructive, in the detail of an approval"],
  ["o", "Switch a tool off or on"],
  ["n", "Add a server"],
  ["l", "Live or paused"],
  ["c", "Copy a link"],
  ["Ctrl+z", "Undo"],
  ["Ctrl+s", "Save, in Settings"],
  ["?", "This list"],
];

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">
        {list.map(([keys, does]) => (
          <Fragment key={does}>
            <dt>{caps(keys).map((k) => <kbd key={k}>{k}</kbd>)}</dt>
            <dd>{does}</dd>
          </Fragment>
        ))}
      </dl>
      <label class="row"><input type="checkbox" checked={singleKeys.value} onChange={(e) => (singleKeys.value = e.currentTarget.checked)} />Single keys act</label>
      <div class="end"><Button kind="main" onClick={onClose}>Close</Button></div>
    </Dialog>
  );
}

