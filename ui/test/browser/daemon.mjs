// A real daemon with its own data directory, and its clients: the REST
// interface with the key, and MCP clients. Nothing here depends on a browser.
import { spawn } from "node:child_process";
import { mkdtemp, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { weather } from "./servers/weather.mjs";

export const patience = 60_000; // ms; a longer wait is a failure

/** Waits until look returns a truthy value, and returns it. After the time limit, it fails with look's last error. */
export async function until(what, look, ms = patience) {
  const end = Date.now() + ms;
  for (let last; ; ) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${ms / 1000} s`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export class Daemon {
  #process;
  #ended;
  #closers = [];
  stderr = "";

  /**
   * Starts `mcpproxy serve`. servers: {name: entry of mcpServers}; demo: notes, weather and shifty, too;
   * scripts: {name: script} are servers of servers/scripted.mjs; config: further keys of the configuration;
   * home: {".cursor/mcp.json": text} are files of the account, those of its MCP clients for example.
   */
  static async run({ servers = {}, demo = false, scripts = {}, config = {}, home = {} } = {}) {
    const d = new Daemon();
    d.binary = process.env.MCPPROXY_BIN;
    if (!d.binary) throw new Error("MCPPROXY_BIN has to name the mcpproxy binary to test");
    d.dir = await mkdtemp(join(tmpdir(), "mcpproxy-ui-"));
    // Servers are started by names on the PATH and files in the working directory, because pictures show
    // what a user would write.
    await mkdir(d.scripts);
    await mkdir(d.bin);
    await symlink(d.binary, join(d.bin, "mcpproxy"));
    await symlink(process.execPath, join(d.bin, "node"));
    await symlink(fileURLToPath(new URL("servers/scripted.mjs", import.meta.url)), join(d.scripts, "server.mjs"));
    for (const [file, text] of Object.entries(home)) {
      await mkdir(dirname(join(d.dir, file)), { recursive: true });
      await writeFile(join(d.dir, file), text, { mode: 0o600 });
    }
    try {
      d.port = await freePort();
      d.url = `http://127.0.0.1:${d.port}`;
      const mcpServers = demo ? await d.demoServers() : {};
      for (const [name, script] of Object.entries(scripts)) mcpServers[name] = { ...(await d.scripted(name, script)), ...servers[name] };
      await d.configure({ ...config, mcpServers: { ...servers, ...mcpServers } });
      await d.start();
    } catch (error) {
      await d.close();
      throw error;
    }
    return d;
  }

  get config() { return join(this.dir, "mcp_config.json") }
  get scripts() { return join(this.dir, "scripts") }
  get bin() { return join(this.dir, "bin") }

  /** Writes the configuration; a running daemon applies it. */
  async configure(config) {
    await writeFile(this.config, JSON.stringify(config, null, 2), { mode: 0o600 });
  }

  /** The bundled upstreams of `mcpproxy demo`. shifty changes its tool when that is called. */
  async demoServers() {
    const w = await weather();
    this.#closers.push(w.close);
    const bundled = (name) => ({ command: "mcpproxy", args: ["demo-upstream", name] });
    return { notes: bundled("notes"), weather: { url: w.url }, shifty: { ...bundled("shifty"), env: { SHIFTY_CHANGES: "when-called" } } };
  }

  /** Writes the script and returns the entry of a server that uses it. A second call replaces the script of the server. */
  async scripted(name, script) {
    const file = join(this.scripts, `${name}.json`);
    await writeFile(file + ".new", JSON.stringify(script));
    await rename(file + ".new", file);
    return { command: "node", args: ["server.mjs", `${name}.json`] };
  }

  /** Starts the process and waits until it answers. */
  async start() {
    const log = (text) => (this.stderr = (this.stderr + text).slice(-100_000));
    this.#process = spawn(this.binary, ["serve", "--config", this.config, "--data-dir", join(this.dir, "data"), "--listen", `127.0.0.1:${this.port}`],
      { cwd: this.scripts, env: { ...process.env, HOME: this.dir, XDG_CONFIG_HOME: "", MCPPROXY_NO_KEYRING: "1", PATH: `${this.bin}:${process.env.PATH}` }, stdio: ["ignore", "ignore", "pipe"] });
    this.#process.stderr.setEncoding("utf8").on("data", log);
    this.#ended = new Promise((resolve) => this.#process.on("exit", resolve).on("error", (error) => resolve(log(String(error)))));
    let over = false;
    void this.#ended.then(() => (over = true));
    await until("the daemon answers", async () => over || (await fetch(this.url + "/healthz")).ok);
    if (over) throw new Error("the daemon ended:\n" + this.stderr);
    this.key = (await readFile(join(this.dir, "data", "api_key"), "utf8")).trim();
  }

  /** Stops it as a user does. */
  stop() { return this.#end("SIGTERM") }

  /** Kills it as a crash does. */
  kill() { return this.#end("SIGKILL") }

  async #end(signal) {
    const child = this.#process;
    if (!child) return;
    this.#process = undefined;
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), patience);
    await this.#ended;
    clearTimeout(late);
  }

  /** Stops it permanently and removes its data. */
  async close() {
    await this.stop();
    for (const close of this.#closers) close();
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Asks REST with the key and returns the answer's JSON; a failure throws an Error with status and problem. */
  api = async (method, path, body, headers = {}) => {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method, headers: { "X-API-Key": this.key, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${response.status} ${text}`), { status: response.status, problem: text });
    return text ? JSON.parse(text) : {};
  };

  /** A new code for signing in. */
  code = async () => (await this.api("POST", "/session/codes", {})).code;

  /** Waits until these servers have the state. */
  state = (wanted, ...names) =>
    until(`${names} are ${wanted}`, async () => {
      const { servers } = await this.api("GET", "/servers");
      return names.every((name) => servers.find((s) => s.name === name)?.state === wanted);
    });

  /** Waits until these tools (server:tool) are listed. */
  tools = (...names) =>
    until(`${names} are there`, async () => {
      const { tools } = await this.api("GET", "/tools?limit=1000");
      return names.every((name) => tools.some((t) => t.name === name));
    });

  /** Connects an MCP client: call("call_tool_read", {name, args}) returns the result, request() that of any method. */
  async client(name = "test-agent", version = "1.0.0", path = "/mcp") {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    let id = 0;
    const post = async (message) => {
      const response = await fetch(this.url + path, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
      const session = response.headers.get("Mcp-Session-Id");
      if (session) headers["Mcp-Session-Id"] = session;
      const text = await response.text();
      return text ? JSON.parse(text) : {};
    };
    const request = async (method, params = {}) => {
      const answer = await post({ id: ++id, method, params });
      if (answer.error) throw Object.assign(new Error(`${method}: ${answer.error.message}`), answer.error);
      return answer.result;
    };
    const { protocolVersion } = await request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version } });
    headers["MCP-Protocol-Version"] = protocolVersion;
    await post({ method: "notifications/initialized" });
    return { request, call: (tool, args = {}) => request("tools/call", { name: tool, arguments: args }) };
  }
}
