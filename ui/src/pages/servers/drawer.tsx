// One server: its status, log and configuration.

import type { ServerDetail } from "../../api/types";
import { api, path, ProblemError } from "../../api/client";
import { useServers } from "../../data/shared";
import { useResource } from "../../data/resource";
import { useActions } from "../../keys";
import { commandLine } from "../../lib/paste";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { Drawer } from "../../ui/drawer";
import { Seg } from "../../ui/field";
import { Empty, Loaded } from "../../ui/parts";
import { Visible } from "../../ui/words";
import { About } from "./about";
import { StateOf } from "./columns";
import { Config } from "./config";
import { LogPart } from "./log";
import { broken, needsLogin, needsSecret } from "./model";
import { MoreMenu, type Ask } from "./more";
import { restart, switchTo, type Part } from "./state";

const partNames = [{ value: "about", label: "Status" }, { value: "log", label: "Log" }, { value: "config", label: "Configuration" }] as const;

/** The drawer of the server that the URL names. */
export function ServerDrawer({ name, part, variable, onPart, onMove, onClose, ask }: { name: string; part: Part; /** The environment variable to set. */ variable: string; onPart: (p: Part) => void; onMove: (by: number) => void; onClose: () => void; ask: (a: Ask) => void }) {
  // Events refresh the shared list; this resource reloads with it.
  const list = useServers();
  const server = useResource(`server ${name}`, (signal) => api.get<ServerDetail>(path`/servers/${name}`, {}, signal), { keep: false, turn: list.at?.getTime() });
  const gone = server.error instanceof ProblemError && server.error.status === 404;
  // The list has most of it already.
  const s = gone ? undefined : (server.data ?? list.data?.find((x) => x.name === name));
  const proposed = !!s?.proposed_by;
  useActions([{ key: "o", label: s?.enabled ? `Disable ${name}` : `Enable ${name}`, icon: "off", when: !!s && !proposed, run: () => s && switchTo(s, !s.enabled) }]);
  return (
    <Drawer class={part === "log" ? "at-log" : ""} label={`Server ${name}`} title={<Visible text={name} />} above={s ? <StateOf of={s} /> : <span class="dim">{gone ? "removed" : "Server"}</span>}
      meta={s && <span class="mono server-how" tabIndex={0}><Visible text={commandLine(s)} /></span>} onMove={onMove} onClose={onClose}
      footer={s && (
        <>
          {s.enabled && s.quarantined && <Button kind="main" href={href("approvals", { id: name })}>Review</Button>}
          {needsLogin(s) && <Button kind="main" decides onClick={() => ask({ what: "login", server: s })}>Log in</Button>}
          {needsSecret(s) && <Button kind="main" decides onClick={() => ask({ what: "secret", server: s })}>Set secret…</Button>}
          {s.enabled && !s.quarantined && <Button kind={broken(s) && !needsSecret(s) ? "main" : undefined} decides onClick={() => restart(s)}>Restart</Button>}
          {!proposed && <Button decides cap="o" kind={s.enabled ? undefined : "main"} onClick={() => switchTo(s, !s.enabled)}>{s.enabled ? "Disable" : "Enable"}</Button>}
          <span class="grow" />
          <MoreMenu of={s} ask={ask} drawer />
        </>
      )}>
      {gone ? <Empty title="Server not found">It was removed or renamed.</Empty> : (
        <>
          <div class="server-parts"><Seg label="View" value={part} onChange={onPart} options={partNames} /></div>
          {part === "log" ? <LogPart name={name} key={name} /> : (
            <Loaded of={server} title="Could not load the server">{(d) => (part === "config" ? <Config of={d} key={name + variable} variable={variable} onChanged={server.reload} /> : <About of={d} onLog={() => onPart("log")} />)}</Loaded>
          )}
        </>
      )}
    </Drawer>
  );
}
