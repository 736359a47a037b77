// The filter options: known servers, tools, clients and sessions.

import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { SessionList, Summary, ToolList } from "../../api/types";
import { useResource } from "../../data/resource";
import { useServers } from "../../data/shared";
import type { Filter } from "../../ui/chips";
import { clock } from "../../lib/format";
import { keys, lanes, names, statuses, statusWords, types, typeWords, valuesOf, type Filters, type Key } from "./filters";

type Option = { value: string; label?: string };

/** Returns the filters with their options, and a callback for the search text of the menu. Options load when the menu opens. */
export function useChoices(f: Filters): { filters: Filter[]; onSearch: (text: string) => void } {
  const [text, setText] = useState<string | null>(null);
  const opened = text !== null;
  const servers = useServers().data ?? [];
  const clients = useResource(opened ? "clients" : null, (signal) => api.get<Summary>("/activity/summary", { period: "30d", step: "1d", group: "client" }, signal));
  const sessions = useResource(opened ? "sessions" : null, (signal) => api.get<SessionList>("/sessions", { period: "7d", limit: 200 }, signal));
  const word = (text ?? "").trim();
  const tools = useResource(opened ? `tools ${word}` : null, async (signal) => {
    await new Promise((r) => setTimeout(r, word ? 80 : 0));
    return api.get<ToolList>("/tools", { q: word, limit: 20 }, signal);
  });
  const options: Record<Key, readonly Option[] | undefined> = {
    lane: lanes.map((value) => ({ value })),
    status: statuses.map((value) => ({ value, label: statusWords[value] })),
    type: types.map((value) => ({ value, label: typeWords[value] })),
    server: servers.map((s) => ({ value: s.name })),
    tool: tools.data?.tools.map((t) => ({ value: t.name })),
    client: clients.data?.groups.filter((g) => g.key).map((g) => ({ value: g.key })),
    session: sessions.data?.sessions.map((s) => ({ value: s.id, label: `${s.id.slice(0, 8)}${s.client_name ? `, ${s.client_name}` : ""}, ${clock(s.first)}` })),
    q: undefined,
  };
  // With a search text, names come first.
  const order: Key[] = word ? ["server", "tool", "client", "session", "lane", "status", "type"] : keys.filter((k) => k !== "q");
  // A selected value stays among the options, so that it can be removed.
  const all = (k: Key) => [...valuesOf(f, k).filter((v) => !options[k]?.some((o) => o.value === v)).map((value) => ({ value })), ...(options[k] ?? [])];
  return { filters: order.map((key) => ({ key, name: names[key], values: valuesOf(f, key), options: all(key) })), onSearch: setText };
}
