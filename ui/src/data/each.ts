// Runs one action on several items.

import { explain } from "../api/client";

/** Runs act on all items, a few at a time. Returns the items for which it succeeded, in order, and the errors of the others. */
export async function each<T>(all: readonly T[], act: (one: T) => Promise<unknown>, atOnce = 4): Promise<{ done: T[]; problems: string[] }> {
  const queue = [...all];
  const done = new Set<T>();
  const problems: string[] = [];
  const worker = async () => {
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      try {
        await act(one);
        done.add(one);
      } catch (error) {
        problems.push(explain(error).message);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return { done: all.filter((one) => done.has(one)), problems };
}
