// A client of the official TypeScript SDK, of the second or the first major version, that lists everything and makes one
// call. It writes what it got.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, sdk, mode, url, tool] = process.argv.slice(2);
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
const prompts = names((await client.listPrompts()).prompts);
const resources = (await client.listResources()).resources.map((one) => one.uri);
const { content } = await client.callTool({ name: tool, arguments: {} });
console.log(JSON.stringify({ tools, prompts, resources, content }));
await client.close();
