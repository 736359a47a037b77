import type { ToolDetail } from "../../api/types";
import { own } from "../../lib/own";
import { Icon } from "../../ui/icon";
import { reasons, Unlock } from "./locked";

/** Why it cannot be called, and what leads on. */
export function Locking({ tool, onChanged }: { tool: ToolDetail; onChanged: () => void }) {
  const says = own(reasons, tool.status)?.says ?? "cannot be called, and it is not known why. See its server's log.";
  return <div class="note inside"><Icon name="lock" /><span>It {says}</span><Unlock tool={tool} onDone={onChanged} /></div>;
}
