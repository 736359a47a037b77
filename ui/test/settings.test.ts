import { diffLines } from "diff";
import { expect, test } from "vitest";
import type { Config, Setting, Validation } from "../src/api/types";
import { lines, tally } from "../src/lib/lines";
import { checkPage, changeCount, effect, facts, heading, isChanged, lead, pieces, place, shown, typed, valueOf, withSetting, withText, wrong } from "../src/pages/settings/model";

const setting = (s: Partial<Setting>): Setting => ({ key: "tools_limit", type: "integer", doc: "", value: 10, default: 10, set: false, ...s });
const limit = setting({});
const timeout = setting({ key: "call_timeout", type: "duration", value: "5m", default: "2m", set: true });
const file: Config = { path: "/c", text: "{}\n", etag: "1", in_force_etag: "1", in_force_since: "2026-11-08T14:20:00", needs_restart: [], unconfirmed: [], settings: [limit, timeout] };
const validation = (v: Partial<Validation>): Validation => ({ ok: true, mistakes: [], warnings: [], changes: [], needs_restart: [], ...v });

test("a difference shows what changed and three lines around it", () => {
  const was = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join("");
  const is = was.replace("line 9\n", "line nine\nand more\n");
  const parts = diffLines(was, is);
  expect(lines(parts).map((l) => (l.kind === "gap" ? `${l.lines.length} from ${l.no}` : `${{ same: " ", added: "+", removed: "-" }[l.kind]}${l.no} ${l.text}`))).toEqual([
    "5 from 1", " 6 line 6", " 7 line 7", " 8 line 8", "-9 line 9", "+9 line nine", "+10 and more", " 11 line 10", " 12 line 11", " 13 line 12", "8 from 14",
  ]);
  expect(tally(parts)).toEqual({ added: 2, removed: 1 });
});

test("a single unchanged line is shown, and a text needs no final line end", () => {
  expect(lines(diffLines("a\nb\nc\nd\ne\n", "a\nb\nc\nd\nx\n")).map((l) => l.kind)).toEqual(["same", "same", "same", "same", "removed", "added"]);
  expect(tally(diffLines("a\nb\r\n", "a\nb", { ignoreNewlineAtEof: true, stripTrailingCr: true }))).toEqual({ added: 0, removed: 0 });
  expect(lines([])).toEqual([]);
});

test("a setting that is set back is no change", () => {
  const changed = withSetting(file, undefined, limit, 15);
  expect(changed).toEqual({ base: file, set: { tools_limit: 15 } });
  expect(valueOf(limit, changed, undefined)).toBe(15);
  expect(withSetting(file, changed, limit, 10)).toBeUndefined();
  const both = withSetting(file, changed, timeout, null);
  expect(valueOf(timeout, both, undefined)).toBe("2m"); // removed: the default
  expect(changeCount(both, undefined)).toBe(2);
  expect(withSetting(file, both, limit, null)).toEqual({ base: file, set: { call_timeout: null } }); // it is not in the file
});

test("settings are kept until the text contains them, and the form shows the text's values", () => {
  const set = withSetting(file, undefined, limit, 15);
  expect(withText(file, set, "{ }\n", false)).toEqual({ base: file, text: "{ }\n", set: { tools_limit: 15 } });
  const text = withText(file, set, '{"tools_limit": 15}\n', true)!;
  expect(text.set).toEqual({});
  const v = validation({ changes: [{ key: "tools_limit", from: 10, to: 15 }] });
  expect(valueOf(limit, text, v)).toBe(15);
  expect(isChanged(limit, text, v)).toBe(true);
  expect(isChanged(timeout, text, v)).toBe(false);
  expect(withText(file, text, file.text, true)).toBeUndefined();
});

test("typed values", () => {
  expect([typed("integer", " 15 "), typed("integer", "many"), typed("integer", ""), typed("boolean", "false"), typed("list", "a\nb"), typed("duration", "5m")]).toEqual([15, "many", "", false, ["a", "b"], "5m"]);
  expect([shown(15), shown(["a", "b"]), shown("5m"), shown(true)]).toEqual(["15", "a\nb", "5m", "true"]);
});

test("the sentences", () => {
  const now = new Date("2026-11-08T15:00:00");
  expect(heading(file, now)).toBe("Active since 14:20");
  expect(heading(file, new Date("2026-11-09T15:00:00"))).toBe("Active since 8 Nov, 14:20");
  expect(lead(file, withSetting(file, undefined, limit, 15), 2, now)).toBe("The active configuration is the saved file. 2 unsaved changes.");
  const refused = { ...file, error: "no", needs_restart: ["log.format"] };
  expect(heading(refused, now)).toBe("The saved file has an error");
  const mistake = { line: 1, column: 1, message: "no", hint: "say yes" };
  expect(heading({ ...refused, mistakes: [mistake, mistake] }, now)).toBe("The saved file has 2 errors");
  expect(wrong(mistake)).toBe("no (say yes)");
  expect(lead(refused, undefined, 0, now)).toBe("The configuration from 14:20 stays active. Restart MCPProxy to apply log.format.");
  const widened = (...keys: string[]) => ({ ...file, unconfirmed: keys.map((key) => ({ key, from: null, to: 1 })) });
  expect(lead(widened("mcpServers.a", "listen"), undefined, 0, now)).toBe("Changes that grant more access need confirmation: mcpServers.a, listen. Confirm here or run mcpproxy config confirm.");
  expect(lead({ ...widened("a", "b", "c", "d"), unconfirmed_why: "no" }, undefined, 0, now)).toBe("Changes that grant more access are not applied: no. Changes that grant more access need confirmation: a, b, c and 1 more. Confirm here or run mcpproxy config confirm.");
  expect(effect(validation({}))).toBe("Applies immediately");
  expect(effect(validation({ changes: [{ key: "mcpServers.a.args", from: null, to: null }, { key: "mcpServers.a.env", from: null, to: null }] }))).toBe("Applies immediately to 1 server");
  expect(effect(validation({ needs_restart: ["listen"] }))).toBe("Restart needed for listen");
  expect(place({ line: 1200, column: 3, key: "log.level", message: "" })).toBe("Line 1,200, log.level");
  expect(facts(setting({ range: "1 to 100", restart: true }))).toBe("Default: 10. 1 to 100. Requires a restart.");
  expect(pieces("Needs `listen`, see [the guide](x.md).")).toEqual([{ text: "Needs ", code: false }, { text: "listen", code: true }, { text: ", see the guide.", code: false }]);
});

test("a check links to the page that fixes it", () => {
  const to = (code: string, title = "", state = "bad") => checkPage({ code, title, state }, ["git", "github"]);
  expect(to("server", "github does not work")).toEqual({ page: "servers", label: "View github", params: { id: "github" } });
  expect(to("login", "Two servers need a login")).toEqual({ page: "servers", label: "Log in", params: {} });
  expect(to("approvals")?.page).toBe("approvals");
  expect(to("config_file")).toEqual({ page: "settings", label: "Fix file", params: { view: "file" } });
  expect([to("disk"), to("server", "github", "ok")]).toEqual([undefined, undefined]);
});
