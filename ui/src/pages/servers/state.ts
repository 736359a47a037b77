// What the page shows stands in the URL, and what acts on a server: all parts of the page use it.

import { list, oneOf, text } from "../../lib/query";
import { api, path } from "../../api/client";
import type { Server } from "../../api/types";
import { servers } from "../../data/shared";
import { search } from "../../router";
import { write } from "../../lib/query";
import { attempt, toast } from "../../ui/toast";
import { ordering } from "../../lib/order";
import { groupNames, orders } from "./model";

export const parts = ["about", "log", "config"] as const;
export type Part = (typeof parts)[number];

export const schema = { q: text(), id: text(), part: oneOf(parts, "about"), variable: text(), fold: list(groupNames), sort: ordering(Object.keys(orders)) };

/** Returns the address of a server's drawer; filter and folds stay. */
export function opened(id: string, part: Part = "about"): string {
  return location.pathname + write(schema, search.peek(), { id, part });
}

/** Asks for the servers again after an action, whether or not events tell. */
function again<T>(answer: T): T {
  servers.reload();
  return answer;
}

/** Does one thing to a server. */
export async function act(name: string, what: "restart" | "logout" | "quarantine" | "enable" | "disable"): Promise<Server> {
  return again(await api.post<Server>(path`/servers/${name}/${what}`));
}

/** Changes one thing of how a server is configured; null takes it out of the file. */
export async function change(name: string, key: string, value: unknown): Promise<Server> {
  return again(await api.patch<Server>(path`/servers/${name}`, { [key]: value }));
}

export async function remove(name: string): Promise<void> {
  await api.delete(path`/servers/${name}`);
  again(undefined);
}

export function switchTo(s: Pick<Server, "name">, on: boolean): void {
  const undo = () => act(s.name, on ? "disable" : "enable");
  void attempt(() => act(s.name, on ? "enable" : "disable"), { text: `Switched ${on ? "on" : "off"} ${s.name}`, undo });
}

export function restart(s: Pick<Server, "name">): void {
  toast({ text: `${s.name} is started anew` });
  void attempt(() => act(s.name, "restart"));
}
