// The actions on a server, and their confirmation dialogs.

import type { Server } from "../../api/types";
import { go } from "../../router";
import { Confirm } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { Menu } from "../../ui/menu";
import { attempt } from "../../ui/toast";
import { SecretDialog } from "../../ui/secrets";
import { needsLogin } from "./model";
import { LoginDialog } from "./login";
import { act, opened, remove, restart, switchTo } from "./state";

/** An action that opens a dialog first. */
export interface Ask { what: "remove" | "quarantine" | "login" | "secret"; server: Server }

/** The menu at the end of a row and in the drawer. */
export function MoreMenu({ of: s, ask, drawer = false }: { of: Server; ask: (a: Ask) => void; drawer?: boolean }) {
  const proposed = !!s.proposed_by;
  return (
    <Menu name={`More for ${s.name}`} class={drawer ? "btn ico" : "btn quiet sm ico"} end label={<Icon name="dots" />}>
      {!proposed && s.enabled && !s.quarantined && <button type="button" role="menuitem" onClick={() => restart(s)}><Icon name="again" small />Restart</button>}
      {!proposed && <button type="button" role="menuitem" onClick={() => switchTo(s, !s.enabled)}><Icon name="off" small />{s.enabled ? "Disable" : "Enable"}</button>}
      {needsLogin(s) && <button type="button" role="menuitem" onClick={() => ask({ what: "login", server: s })}><Icon name="key" small />Log in</button>}
      {!needsLogin(s) && s.login && <button type="button" role="menuitem" onClick={() => ask({ what: "login", server: s })}><Icon name="key" small />Log in again</button>}
      {!needsLogin(s) && s.url && s.enabled && !s.quarantined && <button type="button" role="menuitem" onClick={() => void attempt(() => act(s.name, "logout"), { text: `Logged out of ${s.name}` })}><Icon name="key" small />Log out</button>}
      {!drawer && <button type="button" role="menuitem" onClick={() => go(opened(s.name, "log"))}><Icon name="log" small />Log</button>}
      {!drawer && !proposed && <button type="button" role="menuitem" onClick={() => go(opened(s.name, "config"))}><Icon name="settings" small />Configuration</button>}
      <hr />
      {!proposed && !s.quarantined && <button type="button" role="menuitem" onClick={() => ask({ what: "quarantine", server: s })}><Icon name="shield" small />Quarantine…</button>}
      <button type="button" role="menuitem" onClick={() => ask({ what: "remove", server: s })}><Icon name="close" small />Remove…</button>
    </Menu>
  );
}

/** The dialog of an action. */
export function Asked({ of, onClose, onGone }: { of: Ask; onClose: () => void; onGone: (name: string) => void }) {
  const { name, proposed_by: proposed } = of.server;
  switch (of.what) {
    case "secret": return <SecretDialog server={name} onClose={onClose} />;
    case "login": return <LoginDialog name={name} onClose={onClose} />;
    case "quarantine":
      return (
        <Confirm title={`Quarantine ${name}?`} action="Quarantine" danger={false} onConfirm={() => act(name, "quarantine")} onClose={onClose}>
          The server stops. Agents cannot use its tools until you review its launch and definitions again.
        </Confirm>
      );
    case "remove":
      return (
        <Confirm title={`Remove ${name}?`} action="Remove" name={name} nameLabel="Type the name to confirm" onClose={onClose}
          onConfirm={async () => {
            await remove(name);
            onGone(name);
          }}>
          {proposed ? "Discards the proposal." : "Removes the server from the configuration file and deletes its approvals. Its activity records are kept."} This cannot be undone.
        </Confirm>
      );
  }
}
