import { expect, test } from "vitest";
import { command } from "../src/lib/command";
import { asked, type Anchor, type Asked } from "../src/lib/presence";
import { base64, base64url, challenge, claimCounts, claimParts, fingerprint, fromBase64, signed, statementText } from "../src/lib/sign";

const sum = async (text: string) => Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))), (b) => b.toString(16).padStart(2, "0")).join("");
const hex = (text: string) => Uint8Array.from(text.match(/../g)!, (two) => parseInt(two, 16));
const text = (part: string) => atob(part.replaceAll("-", "+").replaceAll("_", "/"));
const claims = ['approve "tool" "a" "b \\"c\\""', 'presence anchor "passkey"'];
const anchor: Anchor = { kind: "passkey", since: "2026-11-26T10:00:00.123Z", before: "sha256:00", key: "AQI=", credential: "//8=", origin: "http://localhost:8080" };
const statement = {
  claims: "sha256:" + (await sum("mcpproxy presence claims v1\n" + claims.join("\n") + "\n")), count: 2, at: "2026-11-26T10:00:00.123456Z",
  for: "POST /api/v1/a?b=%20", nonce: "n".repeat(26), anchor: "sha256:01",
};
const what: Asked = { statement, claims, anchor };

test("a request is parsed completely or not at all", () => {
  expect(asked({ statement, claims, anchor })).toEqual(what);
  for (const details of [undefined, {}, { statement, claims }, { statement, anchor }, { claims, anchor }, { statement, claims: "all", anchor }]) expect(asked(details)).toBeUndefined();
});

test("the challenge is the digest of the statement, whose members have one order", async () => {
  const mixed = Object.fromEntries(Object.entries(statement).reverse()) as unknown as typeof statement;
  expect(statementText(mixed)).toBe(JSON.stringify(statement));
  expect(base64(await challenge({ ...what, statement: mixed }, statement.for))).toBe(base64(hex(await sum("mcpproxy presence statement v1\n" + JSON.stringify(statement)))));
});

test("a statement for another request, or with other claims than shown, is not signed", async () => {
  await expect(challenge(what, "POST /api/v1/a")).rejects.toThrow("another request");
  for (const other of [[], claims.slice(1), [...claims, "more"], [claims[1]!, claims[0]!], [claims.join("\n")]]) await expect(challenge({ ...what, claims: other }, statement.for)).rejects.toThrow("does not match the changes shown");
  await expect(challenge({ ...what, statement: { ...statement, count: 3 } }, statement.for)).rejects.toThrow("does not match the changes shown");
});

test("the header, and the fingerprint that the command line shows", async () => {
  const bytes = (text: string) => new TextEncoder().encode(text).buffer as ArrayBuffer;
  const header = signed(statement, bytes("id"), { authenticatorData: bytes("data"), clientDataJSON: bytes("{}"), signature: bytes("~~>?") });
  const [of, assertion] = header.split(".").map(text);
  expect(of).toBe(JSON.stringify(statement));
  expect(assertion!.split(".").map(text)).toEqual(["id", "data", "{}", "~~>?"]);
  expect(await fingerprint(anchor)).toBe("sha256:" + await sum('mcpproxy presence anchor v1\npasskey\n2026-11-26T10:00:00.123000Z\nsha256:00\n0102\nffff\n"http://localhost:8080"\n'));
  expect(base64url(fromBase64("++//"))).toBe("--__");
});

test("claims in words", () => {
  expect(claimParts(claims[0]!)).toEqual({ words: "Approve", values: ["tool", "a", 'b \\"c\\"'] });
  expect(claimParts("presence none")).toEqual({ words: "Presence none", values: [] });
  expect(claimCounts([...claims, 'approve "tool" "a" "x"'])).toEqual([{ words: "Approve", count: 2 }, { words: "Presence anchor", count: 1 }]);
});

test("the command for the action of the page", () => {
  const of = (request: string, body?: unknown) => command(request.split(" ")[0]!, request.split(" ")[1]!, body);
  expect(of("POST /servers/git%20hub/tools/a%2Fb/approve", { fingerprint: "1" })).toBe("mcpproxy tools approve 'git hub:a/b'");
  expect(of("POST /servers/a/resources/x%3A%2F%2Fy/approve")).toBe("mcpproxy tools approve --kind resource a:x://y");
  expect(of("POST /servers/a/instructions/approve")).toBe("mcpproxy tools approve --kind instructions a");
  expect(of("POST /approvals/approve", { tools: [{ name: "a:b" }] })).toBe("mcpproxy tools approve a:b");
  expect(of("POST /approvals/approve", { tools: [{ name: "a:b" }, { name: "a:c" }] })).toBe("mcpproxy tools approve 'a:*'");
  expect(of("POST /approvals/approve", { tools: [{ name: "a:b" }, { name: "b:c" }] })).toBe("");
  expect(of("POST /servers/a/approve")).toBe("mcpproxy upstream approve a");
  expect(of("PATCH /servers/a", { trust: "auto" })).toBe("mcpproxy upstream set a trust auto");
  expect(of("PATCH /servers/a", { hint_overrides: { "*": { readOnlyHint: true } } })).toBe(`mcpproxy upstream set a hint_overrides '{"*":{"readOnlyHint":true}}'`);
  expect(of("PATCH /servers/a", { disabled_tools: ["x", "y*"] })).toBe("mcpproxy upstream set a disabled_tools x 'y*'");
  expect(of("PATCH /servers/a", { trust: null })).toBe("mcpproxy upstream set a trust --unset");
  expect(of("PATCH /servers/a", { trust: "auto", url: "x" })).toBe("");
  expect(of("POST /pending/k7q2/approve")).toBe("mcpproxy pending approve k7q2");
  expect(of("POST /leases", { server: "a", lane: "write", for: "15m", calls: 20, tools: "b", client: "cursor" })).toBe("mcpproxy lease grant a --lane write --for 15m --calls 20 --tools b --client cursor");
  expect(of("POST /tokens", { name: "ci", servers: ["a", "b"], lanes: ["read"], expires_in: "30d" })).toBe("mcpproxy token create ci --servers a,b --lanes read --expires 30d");
  expect(of("PUT /presence", { anchor: { kind: "none" } })).toBe("mcpproxy presence set none");
  expect(of("POST /config/confirm")).toBe("mcpproxy config confirm");
  expect(of("DELETE /servers/a")).toBe("");
});
