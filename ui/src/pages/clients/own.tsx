import { useState } from "preact/hooks";
import type { Client } from "../../api/types";
import { count } from "../../lib/format";
import { Button } from "../../ui/button";
import { DrawerPart } from "../../ui/drawer";
import { FoundList, useFound } from "../../ui/found";
import { toast } from "../../ui/toast";

/** The servers that a client has besides MCPProxy; nothing when there are none to take over. */
export function Own({ of: c }: { of: Client }) {
  const found = useFound({ ticked: true, client: c.id });
  const [busy, setBusy] = useState(false);
  if (!found.marks.some((m) => !m.have)) return null;
  const take = async () => {
    setBusy(true);
    const well = (await found.add()).filter((a) => !a.error).length;
    setBusy(false);
    if (well > 0) toast({ text: `${count(well, "server")} of ${c.name} ${well === 1 ? "is" : "are"} taken over` });
  };
  return (
    <DrawerPart title="Servers it has by itself">
      <FoundList of={found} bare />
      <div class="row go"><Button decides disabled={busy || found.count === 0} onClick={take}>{found.count > 0 ? `Take over ${count(found.count, "server")}` : "Take over"}</Button></div>
      <p class="same">Every client reaches them then. Taking over approves exactly these launches: they are started, and their definitions are scanned.</p>
    </DrawerPart>
  );
}
