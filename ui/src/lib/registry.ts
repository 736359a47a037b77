// Servers of registries: what an entry asks for, and the values of the user. Pure.

import type { RegistryEntries, RegistryEntry, RegistryInput, RegistryOption } from "../api/types";
import { own } from "./own";

/** Returns why a server cannot be added; "" if it can. */
export function refusal(e: RegistryEntry): string {
  if (e.status === "deprecated" || e.status === "deleted") return `It is ${e.status} in the registry, so it cannot be added. ${e.status_message ?? ""}`.trim();
  if (e.options.some((o) => !o.problem)) return "";
  return e.options[0]?.problem ?? "It has no package and no address.";
}

/** Returns the required inputs without a value. A secret can be set later. */
export function missing(o: RegistryOption, given: Readonly<Record<string, string>>): RegistryInput[] {
  return o.inputs.filter((i) => i.required && !i.secret && !i.default && !own(given, i.name)?.trim());
}

/** Returns the values for POST /registry/add. An input with several values has one on each line. */
export function valuesOf(o: RegistryOption, given: Readonly<Record<string, string>>): string[] {
  return o.inputs.flatMap((i) => {
    const text = own(given, i.name) ?? "";
    return (i.repeated ? text.split("\n") : [text]).filter((v) => v.trim() !== "").map((v) => `${i.name}=${v.trim()}`);
  });
}

/** Returns what a list of servers does not contain, and how old it is. */
export function answerNotes(all: RegistryEntries, age: (time: string) => string): string[] {
  return all.registries.flatMap((r) => [
    !r.fetched_at ? `${r.name}: ${r.problem ?? "no answer"}.` : r.problem ? `${r.name} cannot be reached. This is its stored answer (age: ${age(r.fetched_at)}).` : `Answer of ${r.name} (age: ${age(r.fetched_at)}).`,
    ...(r.more ? [`${r.name} has more servers: search for a longer name.`] : []),
    ...(r.unreadable ? [`${r.unreadable} servers of ${r.name} are left out: too large, or with a wrong type.`] : []),
  ]);
}
