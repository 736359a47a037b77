// Below a server that is not there: why, the end of its log, and what can be done about it.

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
  if (s.trouble) return <>It goes on by itself when the network is there. A proxy or another registry goes into its variables: <i>Edit</i>.</>;
  if (s.state === "connecting") return <>It is being tried again.</>;
  if (!s.retry_at) return null;
  const left = (Date.parse(s.retry_at) - now) / 1000;
  return left >= 1 ? <>Next try in <span class="num">{span(left)}</span>, or when a call needs it.</> : <>It is tried again now.</>;
}

/** Why it is not there, and when it is tried again. */
export function Why({ of: s, line, often }: { of: Server; line?: { text: string } | undefined; often: string }) {
  return <p class="grow"><Cause of={s} line={line} often={often} /><span class="soft">Calls are answered with SERVER_UNAVAILABLE. <NextTry of={s} /></span></p>;
}

/** The cause with the end of the log and its actions, in the list. */
export function Help({ of: s }: { of: Server }) {
  const { lines, line, often, variable, error } = useFailure(s);
  return (
    <div class="inner">
      <div class="row wrap">
        <Why of={s} line={line} often={often} />
        <Fixes of={s} variable={variable} />
        <Button kind="quiet" small decides onClick={() => switchTo(s, false)}>Disable</Button>
        <Button kind="quiet" small onClick={() => go(opened(s.name, "log"))}>Whole log</Button>
      </div>
      {lines.length > 0 && <LogLines lines={lines.slice(-shownLines)} strong={line} label={`End of the log of ${s.name}`} />}
      {error && <p class="dim">The log cannot be read. <Visible text={error} /></p>}
    </div>
  );
}
