// The URL parameters of the page, and the actions on a server.

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

/** Reloads the servers after an action. */
function again<T>(answer: T): T {
  servers.reload();
  return answer;
}

/** Runs an action on a server. */
export async function act(name: string, what: "restart" | "logout" | "quarantine" | "enable" | "disable"): Promise<Server> {
  return again(await api.post<Server>(path`/servers/${name}/${what}`));
}

/** Changes one setting of a server; null removes it from the file. */
export async function change(name: string, key: string, value: unknown): Promise<Server> {
  return again(await api.patch<Server>(path`/servers/${name}`, { [key]: value }));
}

export async function remove(name: string): Promise<void> {
  await api.delete(path`/servers/${name}`);
  again(undefined);
}

export function switchTo(s: Pick<Server, "name">, on: boolean): void {
  const undo = () => act(s.name, on ? "disable" : "enable");
  void attempt(() => act(s.name, on ? "enable" : "disable"), { text: `${on ? "Enabled" : "Disabled"} ${s.name}`, undo });
}

export function restart(s: Pick<Server, "name">): void {
  toast({ text: `Restarting ${s.name}` });
  void attempt(() => act(s.name, "restart"));
}
