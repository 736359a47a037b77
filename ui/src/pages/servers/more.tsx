// What can be done to a server, and the dialogs that ask first.

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

/** What is asked in a dialog before it is done. */
export interface Ask { what: "remove" | "quarantine" | "login" | "secret"; server: Server }

/** The menu at the end of a row and in the drawer. */
export function MoreMenu({ of: s, ask, drawer = false }: { of: Server; ask: (a: Ask) => void; drawer?: boolean }) {
  const proposed = !!s.proposed_by;
  return (
    <Menu name={`More for ${s.name}`} class={drawer ? "btn ico" : "btn quiet sm ico"} end label={<Icon name="dots" />}>
      {!proposed && s.enabled && !s.quarantined && <button type="button" role="menuitem" onClick={() => restart(s)}><Icon name="again" small />Restart</button>}
      {!proposed && <button type="button" role="menuitem" onClick={() => switchTo(s, !s.enabled)}><Icon name="off" small />{s.enabled ? "Disable" : "Enable"}</button>}
      {needsLogin(s) && <button type="button" role="menuitem" onClick={() => ask({ what: "login", server: s })}><Icon name="key" small />Log in</button>}
      {!needsLogin(s) && s.url && s.enabled && !s.quarantined && <button type="button" role="menuitem" onClick={() => void attempt(() => act(s.name, "logout"), { text: `The login to ${s.name} is forgotten` })}><Icon name="key" small />Log out</button>}
      {!drawer && <button type="button" role="menuitem" onClick={() => go(opened(s.name, "log"))}><Icon name="log" small />Log</button>}
      {!drawer && !proposed && <button type="button" role="menuitem" onClick={() => go(opened(s.name, "config"))}><Icon name="settings" small />Configuration</button>}
      <hr />
      {!proposed && !s.quarantined && <button type="button" role="menuitem" onClick={() => ask({ what: "quarantine", server: s })}><Icon name="shield" small />Quarantine…</button>}
      <button type="button" role="menuitem" onClick={() => ask({ what: "remove", server: s })}><Icon name="close" small />Remove…</button>
    </Menu>
  );
}

/** The dialog of what is asked. */
export function Asked({ of, onClose, onGone }: { of: Ask; onClose: () => void; onGone: (name: string) => void }) {
  const { name, proposed_by: proposed } = of.server;
  switch (of.what) {
    case "secret": return <SecretDialog server={name} onClose={onClose} />;
    case "login": return <LoginDialog name={name} onClose={onClose} />;
    case "quarantine":
      return (
        <Confirm title={`Put ${name} into quarantine?`} action="Quarantine" danger={false} onConfirm={() => act(name, "quarantine")} onClose={onClose}>
          It is stopped, and agents reach none of its tools, until you have reviewed its launch and its definitions again.
        </Confirm>
      );
    case "remove":
      return (
        <Confirm title={`Remove ${name}?`} action="Remove" name={name} nameLabel="Type its name" onClose={onClose}
          onConfirm={async () => {
            await remove(name);
            onGone(name);
          }}>
          {proposed ? "The proposal is dropped." : "It is taken out of the configuration file, and what you decided about its tools is forgotten. Its records stay in the log."} This cannot be undone.
        </Confirm>
      );
  }
}
