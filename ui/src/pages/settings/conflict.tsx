// The file changed while the user edited a draft: both differences, and the choices.

import { useEffect, useState } from "preact/hooks";
import type { Config } from "../../api/types";
import { Button } from "../../ui/button";
import { Difference } from "./difference";
import type { Drafting } from "./draft";

export function Conflict({ file, of }: { file: Config; of: Drafting }) {
  const { draft } = of;
  // The merged text. Changes of keys always merge; a text only if its changes still apply. null: they do not.
  const [joined, setJoined] = useState<string | null>();
  const mine = of.text;
  const base = draft?.base.text ?? "";
  useEffect(() => {
    if (draft?.text === undefined) return setJoined(undefined);
    let shown = true;
    void import("diff").then(({ applyPatch, createPatch }) => {
      const out = applyPatch(file.text, createPatch("", base, mine));
      if (shown) setJoined(out === false ? null : out);
    }, () => shown && setJoined(null));
    return () => void (shown = false);
  }, [file.etag, base, mine, draft?.text]);
  if (!draft) return null;
  return (
    <div class="conflict">
      <div class="conflict-head" role="alert">
        <h3>The file changed on disk</h3>
        <p class="soft">Your changes are not saved. {joined === null ? "Both versions changed the same lines, so they cannot be merged." : "You see the merged file before you save it."}</p>
        <div class="row">
          <Button kind={joined === null ? undefined : "main"} small disabled={joined === null} onClick={() => of.rebase(joined ?? undefined)}>Merge my changes</Button>
          <Button small onClick={() => of.rebase(mine)}>Keep my version</Button>
          <Button kind="quiet" small onClick={of.discard}>Discard my changes</Button>
        </div>
      </div>
      <h3 class="which">Changes in the file</h3>
      <Difference was={base} is={file.text} label="Changes in the file" />
      <h3 class="which">Your changes</h3>
      <Difference was={base} is={mine} label="Your changes" />
    </div>
  );
}
