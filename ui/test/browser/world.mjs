// A daemon with data for all pages: servers that work, crash, wait or are disabled; calls that
// succeeded, were refused or failed; pending definitions and a pending call; leases. For tests and pictures.
import { Daemon, until } from "./daemon.mjs";
import { crashing, issues, poisoned } from "./servers/scripts.mjs";

export async function startWorld() {
  const daemon = await Daemon.run({
    demo: true, scripts: { issues, calendar: crashing, spare: issues }, servers: { spare: { enabled: false }, calendar: {} },
    config: { mcp_management: "propose", ask: { tools: { "notes:delete_note": "ask" }, wait: "10m" }, profiles: { research: { servers: ["issues"] } } },
    home: {
      ".cursor/mcp.json": '{\n  "mcpServers": {\n    "files": {"command": "npx", "args": ["-y", "@example/files"], "env": {"FILES_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyz"}}\n  }\n}\n',
      ".codex/config.toml": 'model = "o"\n', ".claude.json": '{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}}', ".config/zed/settings.json": "{ broken",
    },
  });
  try {
    await daemon.tools("notes:list_notes", "weather:get_forecast", "shifty:add_numbers", "issues:create_issue");
    await act(daemon);
    await daemon.api("POST", "/clients/codex/connect", { dry_run: false });
    await daemon.api("POST", "/tokens", { name: "ci-nightly", servers: ["issues"], lanes: ["read"], expires_in: "30d" });
  } catch (error) {
    await daemon.close();
    throw error;
  }
  return daemon;
}

async function act(daemon) {
  const cursor = await daemon.client("Cursor", "2.3.1");
  const claude = await daemon.client("claude-code", "3.0.4");
  await daemon.api("POST", "/leases", { server: "notes", tools: "delete_note", lane: "destructive", calls: 1 });
  await daemon.api("POST", "/leases", { server: "weather", lane: "write", for: "1h", calls: 12 });
  const intent = (operation_type, reason) => ({ operation_type, data_sensitivity: "internal", reason });
  await claude.call("retrieve_tools", { query: "which notes are there", limit: 3 });
  await claude.call("call_tool_read", { name: "notes:list_notes", intent: intent("read", "the user asked which notes there are") });
  await cursor.call("call_tool_read", { name: "weather:get_forecast", args: { city: "Lisbon", days: 2 } });
  await cursor.call("call_tool_read", { name: "issues:list_issues", args: { repo: "octo/manual" } });
  await claude.call("call_tool_write", { name: "notes:write_note", args: { title: "trip", text: "Lisbon on Friday" }, intent: intent("write", "the user asked for a reminder") });
  await claude.call("call_tool_read", { name: "notes:delete_note", args: { title: "old-draft" } }); // refused
  await claude.call("call_tool_destructive", { name: "notes:delete_note", args: { title: "old-draft" }, intent: intent("destructive", "the user asked to clean up") });
  await cursor.call("call_tool_destructive", { name: "issues:merge", args: { branch: "release/2.5" } }); // fails
  await cursor.call("upstream_servers", { operation: "add", name: "maps", command: "npx", args_json: '["-y","@example/maps-mcp@1.2.0"]', env_json: '{"MAPS_REGION":"eu"}' });
  await claude.call("call_tool_read", { name: "shifty:add_numbers", args: { a: 1, b: 2 } }); // the tool changes after this call
  await daemon.scripted("issues", poisoned);
  await until("the changed tools wait", async () => {
    const { tools } = await daemon.api("GET", "/approvals");
    return ["issues:create_issue", "issues:close_issue", "shifty:add_numbers"].every((name) => tools.some((t) => t.name === name));
  });
  await claude.call("call_tool_write", { name: "issues:create_issue", args: { repo: "octo/manual", title: "Paths with spaces" } }); // refused
  // Its lease is used up, so the call stays pending.
  claude.call("call_tool_destructive", { name: "notes:delete_note", args: { title: "trip" }, intent: intent("destructive", "the user has no use for it any more") }).catch(() => {});
  await until("a call waits", async () => (await daemon.api("GET", "/pending")).pending.length === 1);
}
