// One thing that is done to many.

import { explain } from "../api/client";

/** Does act to all, a few at a time. Returns those to which it was done, in their order, and why it was not to others. */
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
