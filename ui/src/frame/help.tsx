import { Fragment } from "preact";
import { caps } from "../keys";
import { singleKeys } from "../data/prefs";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";

// The keys of all pages, including those that the current page does not use.
const list: [keys: string, does: string][] = [
  ["Ctrl+k", "Search or run a command"],
  ["g o", "Overview. Other pages: g p approvals, g a activity, g t tools, g s servers, g c clients, g comma settings"],
  ["/", "Focus search"],
  ["f", "Add a filter"],
  ["j k", "Next, previous"],
  ["Enter", "Open"],
  ["Escape", "Close"],
  ["a", "Approve"],
  ["x", "Block"],
  ["K", "Approve, keep destructive"],
  ["o", "Enable or disable"],
  ["n", "Add a server"],
  ["l", "Pause or resume live records"],
  ["c", "Copy a link"],
  ["Ctrl+z", "Undo"],
  ["Ctrl+s", "Save settings"],
  ["?", "Keyboard shortcuts"],
];

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="keys">
        {list.map(([keys, does]) => (
          <Fragment key={does}>
            <dt>{caps(keys).map((k) => <kbd key={k}>{k}</kbd>)}</dt>
            <dd>{does}</dd>
          </Fragment>
        ))}
      </dl>
      <label class="row"><input type="checkbox" checked={singleKeys.value} onChange={(e) => (singleKeys.value = e.currentTarget.checked)} />Single-key shortcuts</label>
      <div class="end"><Button kind="main" onClick={onClose}>Close</Button></div>
    </Dialog>
  );
}

