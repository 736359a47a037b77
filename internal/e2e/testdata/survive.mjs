// Clients of the official TypeScript SDK, of both major versions, that call a tool in their sessions until they are told to
// end. Lines on stdin say what happens to the daemon: "down" before it stops, "up" when it runs again, and "end".
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [modules, base, places] = process.argv.slice(2);
const require = createRequire(modules + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));
const v2 = await load('@modelcontextprotocol/client');
const v1 = { ...(await load('@modelcontextprotocol/sdk/client/index.js')), ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')) };

let introductions = 0, phase = 0, done = 0, lost = 0, ended = false;
let [isUp, up] = [Promise.resolve(), () => {}];
const failures = [];
const inFlight = new Map(); // what ends a call, and the phase that it began in
const countingFetch = (url, init) => {
  if (typeof init?.body === 'string' && init.body.includes('"method":"initialize"')) introductions++;
  return fetch(url, init);
};

const clients = await Promise.all(JSON.parse(places).map(async (place, i) => {
  const sdk = i % 2 ? v1 : v2;
  const client = new sdk.Client({ name: 'typescript', version: '1' }, sdk === v2 ? { versionNegotiation: { mode: 'legacy' } } : {});
  const transport = new sdk.StreamableHTTPClientTransport(new URL(base + place.Path), {
    fetch: countingFetch, reconnectionOptions: { maxRetries: 1000, initialReconnectionDelay: 50, maxReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1.5 },
  });
  await client.connect(transport);
  return { client, transport, place, id: transport.sessionId };
}));

/** Calls once, and throws unless the answer is right. */
async function call({ client, place }, mark, signal) {
  const params = { name: place.Tool, arguments: JSON.parse(place.Arguments.replace('%d', mark)) };
  const r = client instanceof v1.Client ? await client.callTool(params, undefined, { signal }) : await client.callTool(params, { signal });
  if (r.isError || r.content[0].text !== `noted ${mark}`) throw new Error(`${place.Path}: ${JSON.stringify(r)}`);
}

async function work(c) {
  while (!ended) {
    await isUp;
    const began = phase, controller = new AbortController();
    inFlight.set(controller, began);
    try {
      await call(c, done, controller.signal);
      console.log(++done);
    } catch (err) {
      if (phase === began) failures.push(`${c.place.Path}: ${err}`);
      else lost++;
    }
    inFlight.delete(controller);
  }
}

const all = Promise.all(clients.map(work));
console.log('connected');
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'down') {
    phase++;
    isUp = new Promise((resolve) => (up = resolve));
    console.log('down');
  } else if (line === 'up') {
    for (const [controller, began] of inFlight) if (began < phase) controller.abort(); // its answer is lost
    up();
  } else {
    break;
  }
}
ended = true;
await all;
for (const c of clients) {
  await call(c, 1).catch((err) => failures.push(`the last call, ${c.place.Path}: ${err}`));
  if (c.transport.sessionId !== c.id) failures.push(`${c.place.Path} has another session`);
}
console.log(JSON.stringify({ introductions, done, lost, failures }));
process.exit(0);
