// A stdio MCP server that follows a script file: node scripted.mjs <script.json>. When
// the file is written again, it announces that its lists have changed. The file contains
//   {serverInfo, instructions, tools, prompts, resources, resourceTemplates,
//    results: {tool or prompt: result}, errors: {tool: {code, message}}, wait: {tool: ms},
//    stderr: [line written at the start], crash: "start" or name of a tool}
// and every part may be missing. A tool without a result answers with its arguments.
import { readFileSync, watch } from "node:fs";
import { basename, dirname } from "node:path";
import { createInterface } from "node:readline";

const file = process.argv[2];
const read = () => JSON.parse(readFileSync(file, "utf8"));
let script = read();
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const refuse = (id, code, message) => send({ id, error: { code, message } });

for (const line of script.stderr ?? []) process.stderr.write(line + "\n");
if (script.crash === "start") process.exit(3);

function result({ method, params = {} }) {
  switch (method) {
    case "initialize": {
      const changes = { listChanged: true };
      return {
        protocolVersion: params.protocolVersion ?? "2025-06-18",
        capabilities: { tools: changes, ...(script.prompts ? { prompts: changes } : {}), ...(script.resources ?? script.resourceTemplates ? { resources: changes } : {}) },
        serverInfo: script.serverInfo ?? { name: "scripted", version: "1.0.0" },
        ...(script.instructions ? { instructions: script.instructions } : {}),
      };
    }
    case "ping": return {};
    case "tools/list": return { tools: script.tools ?? [] };
    case "prompts/list": return { prompts: script.prompts ?? [] };
    case "resources/list": return { resources: script.resources ?? [] };
    case "resources/templates/list": return { resourceTemplates: script.resourceTemplates ?? [] };
    case "prompts/get": return script.results?.[params.name] ?? { messages: [] };
    case "resources/read": return script.results?.[params.uri] ?? { contents: [] };
    case "tools/call": return script.results?.[params.name] ?? { content: [{ type: "text", text: JSON.stringify(params.arguments ?? {}) }] };
  }
  return undefined;
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.id === undefined) return;
  const tool = message.method === "tools/call" ? message.params.name : undefined;
  if (tool !== undefined && tool === script.crash) process.exit(4);
  const error = tool === undefined ? undefined : script.errors?.[tool];
  if (error) return refuse(message.id, error.code, error.message);
  const answer = result(message);
  if (!answer) return refuse(message.id, -32601, "There is no such method.");
  setTimeout(() => send({ id: message.id, result: answer }), script.wait?.[tool] ?? 0);
}).on("close", () => process.exit(0));

watch(dirname(file), (_, name) => {
  if (name !== basename(file)) return;
  script = read();
  for (const list of ["tools", "prompts", "resources"]) send({ method: `notifications/${list}/list_changed` });
});
