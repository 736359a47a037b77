// Creates a passkey.

import type { Anchor } from "../../lib/presence";
import { base64 } from "../../lib/sign";

/** Reports whether passkeys can be created here: an IP address such as 127.0.0.1 cannot have any. */
export const atLocalhost = () => location.hostname === "localhost" && location.protocol === "http:";

// COSE algorithms: ES256, EdDSA, RS256.
const algorithms = [-7, -8, -257];

/** Creates a passkey and returns its anchor, which follows the anchor before. */
export async function makePasskey(before: string): Promise<Anchor> {
  const random = (n: number) => crypto.getRandomValues(new Uint8Array(n));
  // There is no attestation, so nothing signs this challenge.
  const made = (await navigator.credentials.create({
    publicKey: {
      challenge: random(32), rp: { id: location.hostname, name: "MCPProxy" }, user: { id: random(16), name: "MCPProxy", displayName: "MCPProxy" },
      pubKeyCredParams: algorithms.map((alg) => ({ type: "public-key", alg })), authenticatorSelection: { userVerification: "required" }, attestation: "none", timeout: 120_000,
    },
  }).catch((cause: unknown) => {
    if (cause instanceof DOMException && cause.name === "NotAllowedError") throw new Error("No passkey was created: the request was canceled, timed out, or is not supported on this device.");
    throw cause;
  })) as PublicKeyCredential | null;
  const key = (made?.response as AuthenticatorAttestationResponse | undefined)?.getPublicKey();
  if (!made || !key) throw new Error("This browser cannot read the public key of the passkey. Use another browser.");
  return { kind: "passkey", since: new Date().toISOString(), before, key: base64(key), credential: base64(made.rawId), origin: location.origin };
}
