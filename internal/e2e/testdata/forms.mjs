// A client of the official TypeScript SDK, of the second or the first major version, that makes one
// call and answers the form that it is asked to show. It writes what it was shown, and the result.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, sdk, mode, url, token, says, server, n] = process.argv.slice(2);
const require = createRequire(modules + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));
const options = { capabilities: { elicitation: { form: {} } } };
const info = { name: 'typescript', version: sdk };
const http = { requestInit: { headers: token ? { Authorization: 'Bearer ' + token } : {} } };
let client, transport, elicit;
if (sdk === 'client') {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  client = new Client(info, { ...options, versionNegotiation: { mode: mode === 'legacy' ? mode : { pin: mode } } });
  transport = new StreamableHTTPClientTransport(new URL(url), http);
  elicit = 'elicitation/create';
} else {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  elicit = (await load('@modelcontextprotocol/sdk/types.js')).ElicitRequestSchema;
  client = new Client(info, options);
  transport = new StreamableHTTPClientTransport(new URL(url), http);
}
const shown = [];
client.setRequestHandler(elicit, async (request, extra) => {
  shown.push(request.params);
  if (says !== 'nothing') return JSON.parse(says);
  process.stderr.write(request.params.message + '\n');
  const signal = extra.signal ?? extra.mcpReq?.signal;
  return new Promise((_, taken) => signal.addEventListener('abort', () => { shown.push('taken back'); taken(new Error('taken back')); }));
});
await client.connect(transport);
const result = await client.callTool({ name: 'call_tool_destructive', arguments: { name: server + ':wipe', args: { n: Number(n) } } });
console.log(JSON.stringify({ shown, result }));
await client.close();
