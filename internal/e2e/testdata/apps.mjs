// A host of MCP Apps: a client of the official TypeScript SDK, of the second or the first major version, that lists
// tools, calls some, and reads the user interfaces that they name. It writes what it got. The steps come as JSON.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, sdk, mode, url, apps, steps] = process.argv.slice(2);
const require = createRequire(modules + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));
const info = { name: 'host', version: sdk };
const capabilities = apps === 'apps' ? { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } } : {};
let client, transport;
if (sdk === 'client') {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  client = new Client(info, { capabilities, enforceStrictCapabilities: true, versionNegotiation: { mode: mode === 'legacy' ? mode : { pin: mode } } });
  transport = new StreamableHTTPClientTransport(new URL(url));
} else {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  client = new Client(info, { capabilities, enforceStrictCapabilities: true });
  transport = new StreamableHTTPClientTransport(new URL(url));
}
await client.connect(transport);
const out = { extensions: client.getServerCapabilities()?.extensions ?? null, answers: [] };
for (const [what, argument, args] of JSON.parse(steps)) {
  let answer;
  try {
    if (what === 'tools') {
      answer = Object.fromEntries((await client.listTools()).tools.map((one) => [one.name, one._meta?.ui ?? null]));
    } else if (what === 'resources') {
      answer = (await client.listResources()).resources.map((one) => one.uri);
    } else if (what === 'call') {
      const result = await client.callTool({ name: argument, arguments: args });
      answer = { isError: result.isError ?? false, text: result.content[0].text, keys: Object.keys(result.structuredContent ?? {}), ui: result._meta?.ui ?? null };
    } else {
      const [content] = (await client.readResource({ uri: argument })).contents;
      answer = { uri: content.uri, mimeType: content.mimeType, title: /<title>(.*?)<\/title>/.exec(content.text)?.[1], size: content.text.length, _meta: content._meta ?? null };
    }
  } catch (e) {
    answer = { refused: e.message };
  }
  out.answers.push(answer);
}
console.log(JSON.stringify(out));
await client.close();
