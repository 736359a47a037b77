// Rows of a long list, fetched in pages when they come into view. A limited number is kept.

import { useEffect, useReducer, useRef } from "preact/hooks";
import { pages } from "../lib/rows";

export const pageSize = 500;
const maxPages = 20;

export interface Page<T> { rows: T[]; total: number }
export type FetchPage<T> = (offset: number, limit: number, signal: AbortSignal) => Promise<Page<T>>;

/** The pages of one list, by offset. The least recently used ones are removed first. */
export class PageCache<T> {
  total = 0;
  known = false;
  error: unknown;
  private pages = new Map<number, T[]>();
  private asked = new Map<number, AbortController>();

  constructor(private fetch: FetchPage<T>, private changed: () => void, readonly size = pageSize) {}

  row(i: number): T | undefined {
    const at = Math.floor(i / this.size) * this.size;
    return this.pages.get(at)?.[i - at];
  }

  /** Loads the rows first to last; requests for rows out of view are aborted. */
  want(first: number, last: number): void {
    const need = pages(first, Math.max(last, first + 1), this.size);
    for (const [at, abort] of this.asked) {
      if (need.includes(at)) continue;
      abort.abort();
      this.asked.delete(at);
    }
    for (const at of need) {
      const have = this.pages.get(at);
      if (have) {
        this.pages.delete(at);
        this.pages.set(at, have); // recently used
      } else if (!this.asked.has(at) && !this.error) void this.load(at);
    }
  }

  private async load(at: number): Promise<void> {
    const abort = new AbortController();
    this.asked.set(at, abort);
    try {
      const page = await this.fetch(at, this.size, abort.signal);
      if (abort.signal.aborted) return;
      this.pages.set(at, page.rows);
      this.total = page.total;
      this.known = true;
      while (this.pages.size > maxPages) this.pages.delete(this.pages.keys().next().value!);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = error;
    }
    this.asked.delete(at);
    this.changed();
  }

  get count(): number { return this.pages.size }

  stop(): void {
    for (const abort of this.asked.values()) abort.abort();
    this.asked.clear();
  }
}

export interface Rows<T> {
  total: number;
  /** Whether the first page has arrived. */
  known: boolean;
  error?: unknown;
  /** Undefined while its page is fetched. */
  row: (i: number) => T | undefined;
  want: (first: number, last: number) => void;
  reload: () => void;
}

/** Returns the rows of key, fetched page by page. After a change of key, the old rows stay until the first new page arrives. */
export function useWindow<T>(key: string, fetch: FetchPage<T>, size = pageSize): Rows<T> {
  const [again, turn] = useReducer((n: number, _: void) => n + 1, 0);
  const [, draw] = useReducer((n: number, _: void) => n + 1, 0);
  const shown = useRef<PageCache<T> | undefined>(undefined);
  const next = useRef<PageCache<T> | undefined>(undefined);
  const latest = useRef(fetch);
  latest.current = fetch;

  useEffect(() => {
    const cache: PageCache<T> = new PageCache(
      (...a) => latest.current(...a),
      () => {
        // The first page, or its error, replaces the old rows.
        if (next.current === cache) {
          shown.current?.stop();
          shown.current = cache;
          next.current = undefined;
        }
        draw();
      },
      size,
    );
    next.current?.stop();
    next.current = cache;
    cache.want(0, 1);
    return () => cache.stop();
  }, [key, again]);

  const cache = shown.current;
  return {
    total: cache?.total ?? 0,
    known: cache?.known ?? false,
    error: cache?.error,
    row: (i) => cache?.row(i),
    want: (first, last) => cache?.want(first, last),
    reload: () => turn(),
  };
}

/** Rows that are already loaded, in the form that Table expects. */
export function rowsOf<T>(all: readonly T[]): Rows<T> {
  return { total: all.length, known: true, row: (i) => all[i], want: () => {}, reload: () => {} };
}
