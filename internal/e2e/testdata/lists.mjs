// A client of the official TypeScript SDK, of the second or the first major version, that lists everything and makes one
// call. It writes what it got.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, sdk, mode, url, tool, args] = process.argv.slice(2);
const require = createRequire(modules + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));
const info = { name: 'typescript', version: sdk };
let client, transport;
if (sdk === 'client') {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  client = new Client(info, { versionNegotiation: { mode: mode === 'legacy' ? mode : { pin: mode } } });
  transport = new StreamableHTTPClientTransport(new URL(url));
} else {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  client = new Client(info);
  transport = new StreamableHTTPClientTransport(new URL(url));
}
await client.connect(transport);
const names = (list) => list.map((one) => one.name);
const tools = names((await client.listTools()).tools);
const capabilities = client.getServerCapabilities();
const prompts = capabilities.prompts && names((await client.listPrompts()).prompts);
const resources = capabilities.resources && (await client.listResources()).resources.map((one) => one.uri);
const templates = capabilities.resources && (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate);
const { content } = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({ tools, prompts, resources, templates, content }));
await client.close();
