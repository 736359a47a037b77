import { signedIn } from "./api/session";
import { Shell } from "./frame/shell";
import { SignIn } from "./frame/signin";
import "./frame/theme";

/** The frame with the current page, or the sign-in page with the error of the code. */
export function App({ error }: { error: string }) {
  return signedIn.value ? <Shell /> : <SignIn error={error} />;
}
