// Parses the request of MCPProxy for a signature. Pure.

/** The members are in this order, so that a statement has exactly one text. */
export interface Statement { claims: string; count: number; at: string; for: string; nonce: string; anchor: string }

/** The key that verifies signatures. Bytes are base64, as Go writes them. */
export interface Anchor { kind: "none" | "passphrase" | "passkey"; since: string; before: string; key?: string; credential?: string; origin?: string }

export interface Asked { statement: Statement; claims: readonly string[]; anchor: Anchor }

/** Returns the statement to sign from the details of PRESENCE_REQUIRED; undefined if it cannot be signed here. */
export function asked(details: Record<string, unknown> | undefined): Asked | undefined {
  const { statement: s, claims, anchor } = (details ?? {}) as Partial<Asked>;
  return s && anchor && Array.isArray(claims) ? { statement: s, claims, anchor } : undefined;
}
