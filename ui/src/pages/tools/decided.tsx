import type { ToolDetail } from "../../api/types";
import { own } from "../../lib/own";
import { Icon } from "../../ui/icon";
import { reasons, Unlock } from "./locked";

/** Why a tool cannot be called, and the action that helps. */
export function Locking({ tool, onChanged }: { tool: ToolDetail; onChanged: () => void }) {
  const says = own(reasons, tool.status)?.says ?? "cannot be called. See the log of its server.";
  return <div class="note inside"><Icon name="lock" /><span>This tool {says}</span><Unlock tool={tool} onDone={onChanged} /></div>;
}
