import { expect, test } from "vitest";
import type { EventRecord } from "../src/api/types";
import { noticeText } from "../src/lib/notice";

const record = (r: Partial<EventRecord>): EventRecord => ({ id: "1", type: "tool_call", status: "held", server_name: "s", tool_name: "wipe", timestamp: "", reason: "because", ...r });

test("waiting items are announced by their names", () => {
  expect(noticeText(record({}))).toBe("A call waits for your approval: s:wipe");
  expect(noticeText(record({ type: "approval", status: "blocked" }))).toBe("New or changed definitions wait for your review: s:wipe");
  expect(noticeText(record({ type: "server_change", status: "error", tool_name: undefined, error_code: "LOGIN_NEEDED" }))).toBe("A server needs a login: s");
});

test("nothing else is announced", () => {
  expect(noticeText(record({ status: "success" }))).toBe("");
  expect(noticeText(record({ type: "approval", status: "blocked", error_code: "PRESENCE_REQUIRED" }))).toBe("");
  expect(noticeText(record({ type: "server_change", status: "error", error_code: "TIMEOUT" }))).toBe("");
});

test("names are cleaned and cut", () => {
  expect(noticeText(record({ tool_name: "<b>\u202ex/y\n" + "z".repeat(100) }))).toBe("A call waits for your approval: s:?b??x?y?" + "z".repeat(56) + "…");
});
