import { useState } from "preact/hooks";
import type { Asking } from "../api/presence";
import { command } from "../lib/command";
import { challenge, fromBase64, signed } from "../lib/sign";
import { Button } from "../ui/button";
import { Claims } from "../ui/claims";
import { CommandLine } from "../ui/command-line";
import { Dialog } from "../ui/dialog";

/** Shows the changes to sign, and asks for the passkey; a passphrase is entered in a terminal. */
export function Permit({ of }: { of: Asking }) {
  const { kind, origin } = of.asked.anchor;
  const close = () => of.end();
  if (kind !== "passkey") return <InTerminal of={of} onClose={close} />;
  if (location.origin !== origin) return <Elsewhere origin={origin ?? ""} onClose={close} />;
  return <ByPasskey of={of} onClose={close} />;
}

type Props = { of: Asking; onClose: () => void };

function ByPasskey({ of, onClose }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const sign = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setError("");
    try {
      const { statement, anchor } = of.asked;
      const got = (await navigator.credentials.get({
        publicKey: {
          challenge: await challenge(of.asked, of.request), rpId: location.hostname, userVerification: "required", timeout: 120_000,
          allowCredentials: [{ type: "public-key", id: fromBase64(anchor.credential ?? "") }],
        },
      })) as PublicKeyCredential | null;
      if (!got) throw new Error("The browser returned no signature.");
      of.end(signed(statement, got.rawId, got.response as AuthenticatorAssertionResponse));
    } catch (cause) {
      setError(why(cause));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Sign with your passkey" onClose={onClose}>
      <form class="dlg-form" onSubmit={sign}>
        <Claims claims={of.asked.claims} />
        {error && <p class="error-line" role="alert">{error}</p>}
        <div class="end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" decides disabled={busy}>{busy ? "Waiting for passkey…" : "Use passkey"}</Button>
        </div>
      </form>
    </Dialog>
  );
}

// Browsers report one error for a cancellation, a timeout and an unknown passkey.
function why(cause: unknown): string {
  if (cause instanceof DOMException && cause.name === "NotAllowedError") return "The passkey was not used: the request was canceled, timed out, or the passkey is not on this device.";
  return cause instanceof Error ? cause.message : String(cause);
}

function InTerminal({ of, onClose }: Props) {
  const line = command(of.method, of.route, of.body);
  return (
    <Dialog title="Sign with your passphrase" onClose={onClose}>
      <Claims claims={of.asked.claims} />
      <p class="soft">Enter the passphrase in a terminal, never in a web page. {line ? "Run:" : <>Use the mcpproxy command, or edit the configuration file and run <code>mcpproxy config confirm</code>.</>}</p>
      {line && <CommandLine text={line} />}
      <div class="end"><Button kind="main" onClick={onClose}>Close</Button></div>
    </Dialog>
  );
}

function Elsewhere({ origin, onClose }: { origin: string; onClose: () => void }) {
  return (
    <Dialog title="The passkey belongs to another address" onClose={onClose}>
      <p class="soft">Browsers bind a passkey to the address where it was created: <code>{origin}</code>. Open this page there, or run <code>mcpproxy ui</code>.</p>
      <div class="end">
        <Button onClick={onClose}>Close</Button>
        {/^http:\/\/localhost(:\d+)?$/.test(origin) && <Button kind="main" href={origin + location.pathname + location.search}>Open that address</Button>}
      </div>
    </Dialog>
  );
}
