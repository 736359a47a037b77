import { useState } from "preact/hooks";
import type { ToolDetail } from "../../api/types";
import { number } from "../../lib/format";
import { Button } from "../../ui/button";
import { DrawerPart } from "../../ui/drawer";
import { Json } from "../../ui/json";
import { Visible } from "../../ui/words";
import { signatureParts, summary } from "./marked";

/** The definition as agents read it: the description, with the signature or the schema. */
export function Reads({ tool }: { tool: ToolDetail }) {
  const [full, setFull] = useState(false);
  const more = tool.description.trim() !== summary(tool.description);
  return (
    <DrawerPart title="Definition" end={<span class="dim">{number(tool.tokens)} tokens, compact {number(tool.compact_tokens)}</span>}>
      {more && <p class="words reads"><Visible text={tool.description} /></p>}
      {!full
        ? <pre class="json wrap sig" tabIndex={0} aria-label="Signature">{signatureParts(tool.signature).map((p, i) => (p.mark ? <b key={i}><Visible text={p.text} /></b> : <Visible key={i} text={p.text} />))}</pre>
        : <Json value={tool.inputSchema ?? {}} label="Input schema" wrap />}
      <Button kind="quiet" small class="under" onClick={() => setFull(!full)}>{full ? "Show signature" : "Show full schema"}</Button>
    </DrawerPart>
  );
}
