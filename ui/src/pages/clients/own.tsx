import { useState } from "preact/hooks";
import type { Client } from "../../api/types";
import { count } from "../../lib/format";
import { Button } from "../../ui/button";
import { DrawerPart } from "../../ui/drawer";
import { FoundList, useFound } from "../../ui/found";
import { toast } from "../../ui/toast";

/** The servers of a client that can be imported; nothing if there are none. */
export function Own({ of: c }: { of: Client }) {
  const found = useFound({ ticked: true, client: c.id });
  const [busy, setBusy] = useState(false);
  if (!found.marks.some((m) => !m.have)) return null;
  const take = async () => {
    setBusy(true);
    const well = (await found.add()).filter((a) => !a.error).length;
    setBusy(false);
    if (well > 0) toast({ text: `Imported ${count(well, "server")} from ${c.name}` });
  };
  return (
    <DrawerPart title="Servers to import">
      <FoundList of={found} bare />
      <div class="row go"><Button decides disabled={busy || found.count === 0} onClick={take}>{found.count > 0 ? `Import ${count(found.count, "server")}` : "Import"}</Button></div>
      <p class="same">Imported servers are available to all clients. By importing, you approve the commands and URLs shown here. MCPProxy starts the servers and scans their definitions.</p>
    </DrawerPart>
  );
}
