// Why a server does not run, and what can be done about it where that is seen.

import { useState } from "preact/hooks";
import { api, explain, path } from "../api/client";
import type { LogTail, Server } from "../api/types";
import { servers } from "../data/shared";
import { useResource } from "../data/resource";
import { cause, decisive, lastTry, times, variableIn } from "../lib/failure";
import { href } from "../router";
import { Button } from "./button";
import { Confirm } from "./dialog";
import { SecretDialog } from "./secrets";
import { attempt } from "./toast";
import { Visible } from "./words";

const readLines = 200;

/** Returns the log of the last try, and what in it decides. It has more whenever a try has failed. */
export function useFailure(s: Server) {
  const log = useResource(path`/servers/${s.name}/logs`, (signal) => api.get<LogTail>(path`/servers/${s.name}/logs`, { lines: readLines }, signal), { turn: s.last_error_at });
  const all = log.data?.entries ?? [];
  const lines = lastTry(all, readLines);
  const line = !s.trouble && s.failure?.startsWith("EXITED") ? decisive(lines) : undefined;
  // A reference is resolved outside the server's environment: a value there would not help.
  const missing = s.state === "needs_secret" || s.state === "needs_variable";
  return { lines, line, often: times(s, all), variable: missing || s.trouble ? "" : variableIn(line?.text ?? s.last_error ?? ""), error: log.error !== undefined && !log.data ? explain(log.error).message : "" };
}

/** The cause as a sentence: what the server said of it, and how it came to an end, how often. */
export function Cause({ of: s, line, often }: { of: Server; line?: { text: string } | undefined; often: string }) {
  return (
    <>
      <b class="strong"><Visible text={line ? line.text.trim() : cause(s)} /></b>{" "}
      {(line || often) && <span class="soft">{line ? cause(s).replace(/\.$/, "") : "Tried"}{often && `${line ? ", " : " "}${often}`}.</span>}{" "}
    </>
  );
}

/** The way to the launch of a server; variable: of its environment, to be set. */
export const toLaunch = (s: Pick<Server, "name">, variable = "") => href("servers", { id: s.name, part: "config", variable: variable || undefined });

/** What helps: the variable that is missing, the launch, another try, without it. */
export function Fixes({ of: s, variable, secret = false }: { of: Server; variable: string; /** Where nothing else asks for it. */ secret?: boolean }) {
  const [removing, setRemoving] = useState(false);
  const [asking, setAsking] = useState(false);
  const retry = () => void attempt(() => api.post(path`/servers/${s.name}/restart`), { text: `${s.name} is started anew` });
  return (
    <>
      {secret && s.state === "needs_secret" && <Button small decides label={`Set the secrets of ${s.name}…`} onClick={() => setAsking(true)}>Set secret…</Button>}
      {asking && <SecretDialog server={s.name} onClose={() => setAsking(false)} />}
      {variable && <Button small href={toLaunch(s, variable)}>{`Set ${variable}…`}</Button>}
      <Button kind="quiet" small href={toLaunch(s)} label={`Edit ${s.name}`}>Edit</Button>
      <Button kind="quiet" small decides label={`Retry ${s.name}`} onClick={retry}>Retry</Button>
      <Button kind="quiet" small decides label={`Remove ${s.name}…`} onClick={() => setRemoving(true)}>Remove…</Button>
      {removing && (
        <Confirm title={`Remove ${s.name}?`} action="Remove" name={s.name} nameLabel="Type its name" onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await api.delete(path`/servers/${s.name}`);
            servers.reload();
          }}>
          It is taken out of the configuration file, and what you decided about its tools is forgotten. Its records stay in the log. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}
