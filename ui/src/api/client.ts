// Requests to /api/v1. Failures are ProblemError with the daemon's message, or
// OfflineError if there was no response. An aborted request throws as fetch does.

import type { Problem } from "./types";
import { answered, unanswered } from "./connection";
import { asks, permit, presenceHeader } from "./presence";
import { dropSession, proof } from "./session";
import { prefix } from "../root";

export const base = prefix + "/api/v1";

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
    this.name = "ProblemError";
  }
  get code(): string { return this.problem.code }
  get status(): number { return this.problem.status }
  get hint(): string { return this.problem.hint ?? "" }
}

export class OfflineError extends Error {
  constructor() {
    super("MCPProxy is unreachable.");
    this.name = "OfflineError";
  }
}

export type Params = Record<string, string | number | boolean | readonly string[] | undefined>;

export interface Options {
  query?: Params;
  body?: unknown;
  signal?: AbortSignal;
  ifMatch?: string;
  /** Sent as Idempotency-Key: a request repeated with the same key takes effect once. */
  once?: string;
  headers?: Record<string, string>;
}

/** Returns the path with its parameters. Undefined and empty ones are left out; a list repeats its name. */
export function address(path: string, query: Params = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const v of Array.isArray(value) ? value : [value]) {
      if (v !== undefined && v !== "") params.append(name, String(v));
    }
  }
  const text = params.toString();
  return base + path + (text ? "?" + text : "");
}

/** Returns a path with encoded names of servers and tools: path`/servers/${name}`. */
export function path(parts: TemplateStringsArray, ...names: string[]): string {
  return parts.reduce((all, part, i) => all + encodeURIComponent(names[i - 1]!) + part);
}

/**
 * Sends a request and returns the response, whose status is a success. A request that requires
 * user confirmation is sent once more after it.
 */
export async function send(method: string, route: string, o: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", "X-MCPProxy-Source": "ui", ...proof(), ...o.headers };
  if (o.body !== undefined) headers["Content-Type"] = "application/json";
  if (o.ifMatch !== undefined) headers["If-Match"] = o.ifMatch;
  if (o.once) headers["Idempotency-Key"] = o.once;
  let response: Response;
  try {
    response = await fetch(address(route, o.query), {
      method, headers, credentials: "same-origin", redirect: "error", cache: "no-store",
      ...(o.signal ? { signal: o.signal } : {}),
      ...(o.body === undefined ? {} : { body: JSON.stringify(o.body) }),
    });
  } catch (cause) {
    if (o.signal?.aborted) throw cause;
    unanswered();
    throw new OfflineError();
  }
  answered();
  if (response.ok) return response;
  const error = new ProblemError(await problem(response));
  if (asks(error.problem) && !o.headers?.[presenceHeader]) {
    const signed = await permit(error.problem, method, route, address(route, o.query), o.body, o.signal);
    return send(method, route, { ...o, headers: { ...o.headers, [presenceHeader]: signed } });
  }
  // A failed sign-in does not end a session.
  if (error.status === 401 && route !== "/session") dropSession();
  throw error;
}

async function problem(response: Response): Promise<Problem> {
  const about = { type: "about:blank", title: response.statusText, status: response.status, code: `HTTP_${response.status}` };
  try {
    const body = (await response.json()) as Partial<Problem>;
    return { ...about, detail: body.title ?? "MCPProxy refused the request.", ...body, status: response.status };
  } catch {
    return { ...about, detail: `MCPProxy returned status ${response.status}.` };
  }
}

async function json<T>(method: string, route: string, o?: Options): Promise<T> {
  const response = await send(method, route, o);
  const text = await response.text();
  return (text ? JSON.parse(text) : {}) as T;
}

export const api = {
  get: <T>(route: string, query?: Params, signal?: AbortSignal) => json<T>("GET", route, { ...(query ? { query } : {}), ...(signal ? { signal } : {}) }),
  post: <T>(route: string, body: unknown = {}, o?: Options) => json<T>("POST", route, { ...o, body }),
  patch: <T>(route: string, body: unknown, o?: Options) => json<T>("PATCH", route, { ...o, body }),
  put: <T>(route: string, body: unknown, o?: Options) => json<T>("PUT", route, { ...o, body }),
  delete: <T>(route: string, o?: Options) => json<T>("DELETE", route, o),
};

/** Returns the code, message and hint of an error for display. */
export function explain(error: unknown): { code: string; message: string; hint: string } {
  if (error instanceof ProblemError) return { code: error.code, message: error.message, hint: error.hint };
  if (error instanceof OfflineError) return { code: "", message: error.message, hint: "" };
  return { code: "", message: error instanceof Error ? error.message : String(error), hint: "" };
}
