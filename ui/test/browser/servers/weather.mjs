// The demo's weather server, which the binary runs only within `mcpproxy demo`: MCP over HTTP
// with two tools that read. Returns {url, close}.
import { createServer } from "node:http";

const city = { type: "string", minLength: 1 };
const tool = (name, title, description, properties) => ({
  name, title, description, inputSchema: { type: "object", properties, required: ["city"], additionalProperties: false }, annotations: { readOnlyHint: true, openWorldHint: true },
});
const tools = [
  tool("get_forecast", "Weather forecast", "Get the weather forecast of a city for the next days.", { city, days: { type: "integer", minimum: 1, maximum: 7, default: 3 } }),
  tool("current_weather", "Current weather", "Get the current weather of a city: sky and temperature.", { city }),
];

function result({ method, params }) {
  switch (method) {
    case "initialize": return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "weather", version: "1.0.0" } };
    case "ping": return {};
    case "tools/list": return { tools };
    case "tools/call": return { content: [{ type: "text", text: `Invented weather for ${params.arguments.city}: sunny, 21 °C` }] };
  }
  return undefined;
}

export async function weather() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (request.method !== "POST") return response.writeHead(405).end();
    const message = JSON.parse(body);
    if (message.id === undefined) return response.writeHead(202).end();
    const answer = result(message);
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...(answer ? { result: answer } : { error: { code: -32601, message: "There is no such method." } }) }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, close: () => (server.closeAllConnections(), server.close()) };
}
