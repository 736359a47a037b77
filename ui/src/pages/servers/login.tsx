// The login to a server: opens the address and waits for the result.

import { useEffect, useState } from "preact/hooks";
import { api, explain, path } from "../../api/client";
import type { LoginView } from "../../api/types";
import { servers } from "../../data/shared";
import { clock } from "../../lib/format";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { Visible } from "../../ui/words";

const poll = 1500;

/** Starts a login and shows its progress. */
export function LoginDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const [view, setView] = useState<LoginView>();
  const [error, setError] = useState<unknown>();
  const [turn, setTurn] = useState(0);

  const [pasted, setPasted] = useState("");
  const [refused, setRefused] = useState("");

  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const take = (v: LoginView) => {
      setView(v);
      if (v.state === "waiting") timer = window.setTimeout(look, poll);
      else servers.reload();
    };
    const fail = (cause: unknown) => abort.signal.aborted || setError(cause);
    const look = () => void api.get<LoginView>(path`/servers/${name}/login`, {}, abort.signal).then(take, fail);
    setError(undefined);
    setView(undefined);
    api.post<LoginView>(path`/servers/${name}/login`, { headless: away() }, { signal: abort.signal }).then(take, fail);
    return () => (abort.abort(), clearTimeout(timer));
  }, [name, turn]);

  const address = web(view?.url);
  const returns = endsPublicly(address);
  const failed = error !== undefined ? explain(error) : view?.state === "failed" ? { message: view.error ?? "The login failed.", hint: "" } : undefined;
  return (
    <Dialog title={`Log in to ${name}`} onClose={onClose}>
      <div class="soft" aria-live="polite">
        {failed && <p class="error-line"><Visible text={[failed.message, failed.hint].filter(Boolean).join(" ")} /></p>}
        {!failed && !view && <p>Requesting the login page…</p>}
        {!failed && view?.state === "done" && <p>You are logged in. {name} reconnected.</p>}
        {!failed && view?.state === "waiting" && <p>{view.code ? <>Enter the code <strong class="mono">{view.code}</strong> on the server’s page.</> : <>Log in on the server’s page{!returns && ", in a browser on the machine that runs MCPProxy"}.</>} This dialog updates when you are done{view.expires_at && <>. The login expires at <span class="num">{clock(view.expires_at)}</span></>}.</p>}
        {!failed && view?.state === "waiting" && view.previous_authorization_server && <p class="error-line"><Visible text={`${name} has changed its authorization server: ${view.authorization_server} instead of ${view.previous_authorization_server}.`} /></p>}
        {!failed && view?.state === "waiting" && address && <p class="login-at"><span class="mono"><Visible text={new URL(address).host} /></span><CopyButton text={address} label="Copy address" /></p>}
        {!failed && view?.state === "waiting" && !view.code && !returns && away() && (
          <form class="row wrap gap" onSubmit={(e) => { e.preventDefault(); setRefused(""); api.post<LoginView>(path`/servers/${name}/login/complete`, { url: pasted }, {}).catch((cause: unknown) => setRefused(explain(cause).message)); }}>
            <label class="grow">Your browser ends at an address that it cannot open. Paste that address: <input type="text" value={pasted} autocomplete="off" spellcheck={false} onInput={(e) => setPasted(e.currentTarget.value)} /></label>
            <Button small type="submit">Complete</Button>
          </form>
        )}
        {refused && <p class="error-line"><Visible text={refused} /></p>}
      </div>
      <div class="end">
        <Button kind={view?.state === "done" ? "main" : undefined} onClick={onClose}>{view?.state === "done" ? "Done" : "Close"}</Button>
        {failed && <Button kind="main" decides onClick={() => setTurn(turn + 1)}>Try again</Button>}
        {!failed && view?.state === "waiting" && address && <Button kind="main" icon="out" onClick={() => window.open(address, "_blank", "noopener,noreferrer")}>Open login page</Button>}
      </div>
    </Dialog>
  );
}

// Whether the login ends at the public URL of MCPProxy, which browsers on all machines can open.
function endsPublicly(address: string | undefined): boolean {
  return !!address && /^https:/i.test(new URL(address).searchParams.get("redirect_uri") ?? "");
}

// Whether this browser runs on another machine than MCPProxy: the login cannot return to it.
function away(): boolean {
  return !["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
}

// The address comes from the server: only http and https are opened.
function web(address: string | undefined): string | undefined {
  return address && /^https?:\/\//i.test(address) ? address : undefined;
}
