// Actions on the selected servers.

import { useState } from "preact/hooks";
import type { Server } from "../../api/types";
import { count, number } from "../../lib/format";
import { Button } from "../../ui/button";
import { doAll, Selected, type Selection } from "../../ui/selection";
import type { Row } from "./model";
import { act } from "./state";

/** The actions for the selected servers. They run one after another, since each edits the configuration. */
export function Many({ of }: { of: Selection<Row> }) {
  const [busy, setBusy] = useState(false);
  const all = of.rows.flatMap((r) => ("server" in r && !r.server.proposed_by ? [r.server] : []));
  const on = all.filter((s) => s.enabled);
  const off = all.filter((s) => !s.enabled);
  const run = async (servers: readonly Server[], what: "enable" | "disable" | "restart", word: string) => {
    const other = { enable: "disable", disable: "enable", restart: undefined } as const;
    const back = other[what];
    setBusy(true);
    await doAll(servers, (s) => act(s.name, what), (n) => `${word} ${count(n, "server")}.`, back && ((done) => doAll(done, (s) => act(s.name, back), (n) => `Undone for ${count(n, "server")}.`, undefined, 1)), 1);
    setBusy(false);
    of.clear();
  };
  return (
    <Selected count={of.rows.length} onClear={of.clear}>
      {on.length > 0 && <Button small decides disabled={busy} onClick={() => void run(on, "disable", "Disabled")}>{`Disable ${number(on.length)}`}</Button>}
      {off.length > 0 && <Button small decides disabled={busy} onClick={() => void run(off, "enable", "Enabled")}>{`Enable ${number(off.length)}`}</Button>}
      {on.some((s) => !s.quarantined) && <Button small decides disabled={busy} onClick={() => void run(on.filter((s) => !s.quarantined), "restart", "Restarted")}>{`Restart ${number(on.filter((s) => !s.quarantined).length)}`}</Button>}
    </Selected>
  );
}
