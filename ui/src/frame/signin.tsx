import { useEffect, useState } from "preact/hooks";
import { explain } from "../api/client";
import { open } from "../api/signin";
import { Button } from "../ui/button";
import { Field } from "../ui/field";

/** The page for who has no session: a code comes by the address, or the key is pasted. */
export function SignIn({ error: first = "" }: { error?: string }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState(first);
  const [busy, setBusy] = useState(false);
  useEffect(() => setError(first), [first]);
  useEffect(() => void (document.title = "Sign in · MCPProxy"), []);
  const submit = async (e: Event) => {
    e.preventDefault();
    if (!key.trim() || busy) return;
    setBusy(true);
    setError("");
    try {
      await open({ key: key.trim() });
    } catch (cause) {
      const { message, hint } = explain(cause);
      setError([message, hint].filter(Boolean).join(" "));
    }
    setBusy(false);
  };
  return (
    <main class="sign-in" id="main">
      <div class="frame">
        <form class="dlg" onSubmit={submit}>
          <h1>Open MCPProxy from the terminal</h1>
          <p class="soft"><code>mcpproxy ui</code> opens this page signed in. Or paste the key: it is in the file <code>api_key</code> of the data directory.</p>
          <Field label="Key" error={error || undefined}>
            {(a) => <input {...a} class="field mono" type="password" autocomplete="off" spellcheck={false} value={key} onInput={(e) => setKey(e.currentTarget.value)} />}
          </Field>
          <div class="end"><Button kind="main" type="submit" disabled={!key.trim() || busy}>Sign in</Button></div>
        </form>
      </div>
    </main>
  );
}
