// Why a server does not run, and the actions that fix it.

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

/** Returns the log of the last start, and the line with the cause. It reloads after each failure. */
export function useFailure(s: Server) {
  const log = useResource(path`/servers/${s.name}/logs`, (signal) => api.get<LogTail>(path`/servers/${s.name}/logs`, { lines: readLines }, signal), { turn: s.last_error_at });
  const all = log.data?.entries ?? [];
  const lines = lastTry(all, readLines);
  const line = !s.trouble && s.failure?.startsWith("EXITED") ? decisive(lines) : undefined;
  // A reference is resolved outside the server's environment: a value there would not help.
  const missing = s.state === "needs_secret" || s.state === "needs_variable";
  return { lines, line, often: times(s, all), variable: missing || s.trouble ? "" : variableIn(line?.text ?? s.last_error ?? ""), error: log.error !== undefined && !log.data ? explain(log.error).message : "" };
}

/** The cause as a sentence: the line of the log, how the server ended, and how often. */
export function Cause({ of: s, line, often }: { of: Server; line?: { text: string } | undefined; often: string }) {
  return (
    <>
      <b class="strong"><Visible text={line ? line.text.trim() : cause(s)} /></b>{" "}
      {(line || often) && <span class="soft">{line ? cause(s).replace(/\.$/, "") : "Failed"}{often && `${line ? ", " : " "}${often}`}.</span>}{" "}
    </>
  );
}

/** Returns the URL of the launch of a server; variable: the environment variable to set. */
export const toLaunch = (s: Pick<Server, "name">, variable = "") => href("servers", { id: s.name, part: "config", variable: variable || undefined });

/** The actions: set a missing variable, edit, retry, remove. */
export function Fixes({ of: s, variable, secret = false }: { of: Server; variable: string; /** Also offers to set a secret. */ secret?: boolean }) {
  const [removing, setRemoving] = useState(false);
  const [asking, setAsking] = useState(false);
  const retry = () => void attempt(() => api.post(path`/servers/${s.name}/restart`), { text: `Restarting ${s.name}` });
  return (
    <>
      {secret && s.state === "needs_secret" && <Button small decides label={`Set the secrets of ${s.name}…`} onClick={() => setAsking(true)}>Set secret…</Button>}
      {asking && <SecretDialog server={s.name} onClose={() => setAsking(false)} />}
      {variable && <Button small href={toLaunch(s, variable)}>{`Set ${variable}…`}</Button>}
      <Button kind="quiet" small href={toLaunch(s)} label={`Edit ${s.name}`}>Edit</Button>
      <Button kind="quiet" small decides label={`Retry ${s.name}`} onClick={retry}>Retry</Button>
      <Button kind="quiet" small decides label={`Remove ${s.name}…`} onClick={() => setRemoving(true)}>Remove…</Button>
      {removing && (
        <Confirm title={`Remove ${s.name}?`} action="Remove" name={s.name} nameLabel="Type the name to confirm" onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await api.delete(path`/servers/${s.name}`);
            servers.reload();
          }}>
          Removes the server from the configuration file and deletes its approvals. Its activity records are kept. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}
