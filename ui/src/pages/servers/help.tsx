// Below a server that is not there: why, the end of its log, and what can be done about it.

import { useEffect, useState } from "preact/hooks";
import { api, explain, path } from "../../api/client";
import type { LogTail, Server } from "../../api/types";
import { useResource } from "../../data/resource";
import { span } from "../../lib/format";
import { go } from "../../router";
import { Button } from "../../ui/button";
import { Visible } from "../../ui/words";
import { LogLines } from "./lines";
import { cause } from "./model";
import { lastTry } from "./tail";
import { opened, switchTo } from "./state";

const shownLines = 6;
const readLines = 40;

/** Why it is not there, and when it is tried again. */
export function Cause({ of: s }: { of: Server }) {
  return (
    <p class="grow">
      <b class="strong"><Visible text={cause(s)} /></b>{" "}
      <span class="soft">Calls are answered with SERVER_UNAVAILABLE. <NextTry of={s} /></span>
    </p>
  );
}

function NextTry({ of: s }: { of: Server }) {
  const [now, tick] = useState(() => Date.now());
  useEffect(() => {
    if (!s.retry_at) return;
    const timer = setInterval(() => tick(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [s.retry_at]);
  if (s.state === "connecting") return <>It is being tried again.</>;
  if (!s.retry_at) return null;
  const left = (Date.parse(s.retry_at) - now) / 1000;
  return left >= 1 ? <>Next try in <span class="num">{span(left)}</span>, or when a call needs it.</> : <>It is tried again now.</>;
}

/** The cause with the end of the log and its actions, in the list. */
export function Help({ of: s }: { of: Server }) {
  // The log has more whenever a try has failed.
  const log = useResource(path`/servers/${s.name}/logs`, (signal) => api.get<LogTail>(path`/servers/${s.name}/logs`, { lines: readLines }, signal), { turn: s.last_error_at });
  return (
    <div class="inner">
      <div class="row">
        <Cause of={s} />
        <Button kind="quiet" small decides onClick={() => switchTo(s, false)}>Disable</Button>
        <Button kind="quiet" small onClick={() => go(opened(s.name, "config"))}>Edit launch</Button>
        <Button kind="quiet" small onClick={() => go(opened(s.name, "log"))}>Whole log</Button>
      </div>
      {log.data && log.data.entries.length > 0 && <LogLines lines={lastTry(log.data.entries, shownLines)} label={`End of the log of ${s.name}`} />}
      {!log.data && log.error !== undefined && <p class="dim">The log cannot be read. {explain(log.error).message}</p>}
    </div>
  );
}
