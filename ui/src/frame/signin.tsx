import { useEffect, useState } from "preact/hooks";
import { explain } from "../api/client";
import { open } from "../api/signin";
import { Button } from "../ui/button";
import { Field } from "../ui/field";

/** The sign-in page: by a code in the URL, or by the API key. */
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
          <h1>Sign in to MCPProxy</h1>
          <p class="soft">Run <code>mcpproxy ui</code> in a terminal, or paste the API key. It is in the file <code>api_key</code> in the data directory.</p>
          <Field label="API key" error={error || undefined}>
            {(a) => <input {...a} class="field mono" type="password" autocomplete="off" spellcheck={false} value={key} onInput={(e) => setKey(e.currentTarget.value)} />}
          </Field>
          <div class="end"><Button kind="main" type="submit" disabled={!key.trim() || busy}>Sign in</Button></div>
        </form>
      </div>
    </main>
  );
}
