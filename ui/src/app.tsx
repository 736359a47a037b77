import { signedIn } from "./api/session";
import { Shell } from "./frame/shell";
import { SignIn } from "./frame/signin";
import "./frame/theme";

/** The whole page: the frame with a page in it, or the sign-in with what was wrong with the code. */
export function App({ error }: { error: string }) {
  return signedIn.value ? <Shell /> : <SignIn error={error} />;
}
