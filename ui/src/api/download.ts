import { send, type Params } from "./client";

/** Saves what a route answers as a file: a link alone could not send the session. */
export async function download(route: string, query: Params, name: string, signal?: AbortSignal): Promise<void> {
  const response = await send("GET", route, { query, headers: { Accept: "*/*" }, ...(signal ? { signal } : {}) });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
