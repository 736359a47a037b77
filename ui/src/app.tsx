import { useEffect, useState } from "preact/hooks";
import { signedIn } from "./api/session";
import { explain } from "./api/client";
import { start } from "./api/signin";
import { Shell } from "./frame/shell";
import { SignIn } from "./frame/signin";
import "./frame/theme";

/** The whole page: the sign-in, or the frame with a page in it. */
export function App({ code }: { code: string }) {
  const [error, setError] = useState("");
  useEffect(() => {
    start(code).catch((cause) => {
      const { message, hint } = explain(cause);
      setError([message, hint].filter(Boolean).join(" "));
    });
  }, []);
  if (signedIn.value === "unknown") return null;
  return signedIn.value === "no" ? <SignIn error={error} /> : <Shell />;
}
