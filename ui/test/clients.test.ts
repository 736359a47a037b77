import { expect, test } from "vitest";
import { clientsOf, heading, sessionName, went, type Session } from "../src/pages/clients/used";

const session = (s: Partial<Session>): Session => ({ id: "s", first: "2026-11-20T10:00:00Z", last: "2026-11-20T10:00:00Z", actor: "agent", source: "mcp", calls: 1, refused: 0, failed: 0, ...s });

test("clients are the agents' sessions, taken together by name", () => {
  const all = clientsOf([
    session({ client_name: "claude-code", client_version: "2.4.1", calls: 9 }), session({ client_name: "claude-code", client_version: "2.3.0", refused: 1, last: "2026-11-20T12:00:00.5Z" }),
    session({ client_name: "mine", last: "2026-11-20T11:00:00+00:00" }), session({ actor: "admin", client_name: "curl" }), session({ source: "rest", client_name: "Mozilla" }), session({}),
  ]);
  expect(all.map((c) => [c.name, c.versions, c.sessions, c.calls, c.refused])).toEqual([["Claude Code", ["2.4.1", "2.3.0"], 2, 10, 1], ["mine", [], 1, 1, 0], ["It has no name", [], 1, 1, 0]]);
  expect(all[0]!.last).toBe("2026-11-20T12:00:00.5Z");
});

test("what the page says", () => {
  expect(heading(4, false)).toBe("Four clients used MCPProxy today");
  expect(heading(1, true)).toBe("At least one client used MCPProxy today");
  expect(heading(0, false)).toBe("No client used MCPProxy today");
  expect(sessionName(session({ client_name: "cursor-vscode", client_version: "3.23" }))).toBe("Cursor 3.23");
  expect(sessionName(session({ source: "cli" }))).toBe("cli");
  expect(went({ calls: 1, refused: 2, failed: 0 })).toBe("1 call, 2 refused");
});
