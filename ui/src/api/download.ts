import { send, type Params } from "./client";

/** Downloads a route as a file. A plain link could not send the session header. */
export async function download(route: string, query: Params, name: string, signal?: AbortSignal): Promise<void> {
  const response = await send("GET", route, { query, headers: { Accept: "*/*" }, ...(signal ? { signal } : {}) });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
