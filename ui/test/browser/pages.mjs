// The lists of pages and states for tests of all pages. The pages come from
// src/frame/pages.ts. Add a line here for each state with its own address.
import { readFileSync, readdirSync } from "node:fs";

/** [{name, title, key}] of all pages. */
export const pages = [...readFileSync(new URL("../../src/frame/pages.ts", import.meta.url), "utf8").matchAll(/\{ name: "(\w+)", title: "([^"]+)".*? key: "(.)"/g)]
  .map(([, name, title, key]) => ({ name, title, key }));

/** Returns the sources of a page, which show what to expect. */
export function readSources(name) {
  const folder = new URL(`../../src/pages/${name}/`, import.meta.url);
  return readdirSync(folder, { recursive: true }).filter((f) => /\.tsx?$/.test(f)).map((f) => readFileSync(new URL(f, folder), "utf8")).join("\n");
}

const record = async (daemon, filter) => (await daemon.api("GET", `/activity?limit=1&${filter}`)).activities[0].id;

/** The addresses below /ui/ that show the states of world.mjs. */
export async function places(daemon) {
  const call = await record(daemon, "type=tool_call&status=success&server=weather");
  const refused = await record(daemon, "type=policy_decision&status=blocked&server=notes");
  const failed = await record(daemon, "type=tool_call&status=error&server=issues");
  const [waits] = (await daemon.api("GET", "/pending")).pending;
  const proposed = await record(daemon, "type=server_change&server=issues");
  return [
    ...pages.map((p) => p.name),
    "overview?start=1",
    `approvals?kind=call&id=${waits.id}`, "approvals?id=issues:create_issue", "approvals?id=issues:close_issue", "approvals?id=issues:list_issues", "approvals?id=maps",
    `activity?id=${call}`, `activity?id=${refused}`, `activity?id=${failed}`, `activity?id=${proposed}`, `activity?id=${waits.activity_id}`, "activity?status=blocked", "activity?q=nothing+has+this",
    "tools?q=write+a+note", "tools?id=notes:delete_note", "tools?id=issues:create_issue", "tools?q=qqqzzz",
    "servers?id=issues", "servers?id=calendar", "servers?id=maps", "servers?id=spare", "servers?q=qqqzzz",
    "clients?id=codex", "clients?id=cursor", "clients?id=claude-code", "clients?id=zed", "clients?id=opencode",
    "settings?part=diagnostics",
    "nowhere",
  ];
}

/** The buttons of the page that may open a dialog: their text ends with dots, or an attribute declares it. */
export const openers = (page) => page.locator('#main button:not([disabled]):is([aria-haspopup=dialog], :text-matches("(…|\\\\.\\\\.\\\\.)$"))');

// Runs in the page: reports whether something covers the button, or whether it cannot be scrolled into view.
function covered(button) {
  button.scrollIntoView({ block: "nearest", inline: "nearest" });
  const r = button.getBoundingClientRect();
  const top = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
  return !top || !(button.contains(top) || top.contains(button));
}

/** Opens each dialog and menu of the page in turn, and calls look(name) while it is open. It skips those in seen, and adds the others to it. */
export async function eachSheet(page, seen, look) {
  const open = page.locator("dialog[open], [popover]:popover-open");
  for (const found of [openers(page), page.locator("#main button[popovertarget]:not([disabled])")]) {
    for (let i = 0; i < (await found.count()); i++) {
      const button = found.nth(i);
      if (!(await button.isVisible())) continue;
      const name = ((await button.innerText()) || (await button.getAttribute("aria-label")) || "").trim();
      if (seen.has(name)) continue;
      if (await button.evaluate(covered)) continue; // a button under an open record cannot be clicked
      seen.add(name);
      await button.click();
      await open.first().waitFor().catch(() => { throw new Error(`"${name}" opens nothing on ${page.url()}`) });
      await look(name);
      await page.keyboard.press("Escape");
      await open.first().waitFor({ state: "hidden" }).catch(() => { throw new Error(`Esc does not close what "${name}" opens on ${page.url()}`) });
    }
  }
}
