// Below a server that is not running: the cause, the end of its log, and actions.

import { useEffect, useState } from "preact/hooks";
import type { Server } from "../../api/types";
import { span } from "../../lib/format";
import { go } from "../../router";
import { Button } from "../../ui/button";
import { Cause, Fixes, useFailure } from "../../ui/failure";
import { Visible } from "../../ui/words";
import { LogLines } from "./lines";
import { opened, switchTo } from "./state";

const shownLines = 6;

function NextTry({ of: s }: { of: Server }) {
  const [now, tick] = useState(() => Date.now());
  useEffect(() => {
    if (!s.retry_at) return;
    const timer = setInterval(() => tick(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [s.retry_at]);
  if (s.trouble) return <>MCPProxy retries when the network is available again. To use a proxy or another registry, set its environment variables with <i>Edit</i>.</>;
  if (s.state === "connecting") return <>Retrying…</>;
  if (!s.retry_at) return null;
  const left = (Date.parse(s.retry_at) - now) / 1000;
  return left >= 1 ? <>Next retry in <span class="num">{span(left)}</span>, or with the next call.</> : <>Retrying now.</>;
}

/** The cause of a failure, and when the next retry is. */
export function Why({ of: s, line, often }: { of: Server; line?: { text: string } | undefined; often: string }) {
  return <p class="grow"><Cause of={s} line={line} often={often} /><span class="soft">Calls fail with SERVER_UNAVAILABLE. <NextTry of={s} /></span></p>;
}

/** The cause, the end of the log, and actions, in the list. */
export function Help({ of: s }: { of: Server }) {
  const { lines, line, often, variable, error } = useFailure(s);
  return (
    <div class="inner">
      <div class="row wrap">
        <Why of={s} line={line} often={often} />
        <Fixes of={s} variable={variable} />
        <Button kind="quiet" small decides onClick={() => switchTo(s, false)}>Disable</Button>
        <Button kind="quiet" small onClick={() => go(opened(s.name, "log"))}>Full log</Button>
      </div>
      {lines.length > 0 && <LogLines lines={lines.slice(-shownLines)} strong={line} label={`End of the log of ${s.name}`} />}
      {error && <p class="dim">Could not load the log. <Visible text={error} /></p>}
    </div>
  );
}
