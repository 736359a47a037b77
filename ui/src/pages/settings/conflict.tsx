// The file changed while a draft of it was made: both differences, and what to do.

import { useEffect, useState } from "preact/hooks";
import type { Config } from "../../api/types";
import { Button } from "../../ui/button";
import { Difference } from "./difference";
import type { Drafting } from "./draft";

export function Conflict({ file, of }: { file: Config; of: Drafting }) {
  const { draft } = of;
  // Together: keys can always be set once more; a text, where its changes still fit. null: they do not.
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
        <h3>The file changed meanwhile</h3>
        <p class="soft">Nothing of yours was saved. {joined === null ? "Both changed the same lines, so they cannot be put together." : "Put together, it is shown once more before it is saved."}</p>
        <div class="row">
          <Button kind={joined === null ? undefined : "main"} small disabled={joined === null} onClick={() => of.rebase(joined ?? undefined)}>Put mine onto it</Button>
          <Button small onClick={() => of.rebase(mine)}>Keep mine only</Button>
          <Button kind="quiet" small onClick={of.discard}>Drop mine</Button>
        </div>
      </div>
      <h3 class="which">What changed in the file</h3>
      <Difference was={base} is={file.text} label="What changed in the file" />
      <h3 class="which">What you changed</h3>
      <Difference was={base} is={mine} label="What you changed" />
    </div>
  );
}
