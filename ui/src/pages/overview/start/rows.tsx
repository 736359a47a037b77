import type { Server, Waiting } from "../../../api/types";
import { href } from "../../../router";
import { Cause, Fixes, useFailure } from "../../../ui/failure";
import { State } from "../../../ui/marks";
import { Visible } from "../../../ui/words";
import { progress } from "./model";

/** The servers and their progress. */
export function Added({ servers, waiting }: { servers: readonly Server[]; waiting: Waiting | undefined }) {
  if (!servers.length) return null;
  return (
    <>
      <h3 class="added">Servers</h3>
      <ul class="launches" aria-label="Added servers">
        {servers.map((s) => {
          const p = progress(s, waiting);
          return (
            <li key={s.name}>
              <div class="row"><a class="strong" href={href("servers", { id: s.name })}><Visible text={s.name} /></a><span class="end"><State kind={p.kind}>{p.word}</State></span></div>
              {p.why && <Failed of={s} />}
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Failed({ of: s }: { of: Server }) {
  const { line, often, variable } = useFailure(s);
  return <div class={s.state === "failed" ? "launch bad" : "launch"}><p><Cause of={s} line={line} often={often} /></p><div class="row wrap"><Fixes of={s} variable={variable} secret /></div></div>;
}
