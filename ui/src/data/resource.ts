// The data of a page: old data stays while new data is fetched. A loading state is shown
// only after 150 ms.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Resource<T> {
  data?: T;
  /** The error of the last request; older data can still be present. */
  error?: unknown;
  loading: boolean;
  /** There has been no data for 150 ms: show a skeleton. */
  slow: boolean;
  /** When data was received. */
  at?: Date;
  /** Repeats the request. */
  reload: () => void;
  /** Replaces data immediately with the response of an action. */
  set: (data: T) => void;
}

interface State<T> { key: string; data?: T; error?: unknown; at?: Date; loading: boolean }

/**
 * Returns the fetcher's result for key; it fetches again whenever key or turn changes.
 * A null key fetches nothing. After a change of key, the old data stays until the new data
 * arrives; pass keep = false if that would be wrong, for example for another record.
 */
export function useResource<T>(key: string | null, fetcher: (signal: AbortSignal) => Promise<T>, options: { keep?: boolean; turn?: unknown } = {}): Resource<T> {
  const [state, setState] = useState<State<T>>({ key: "", loading: false });
  const [again, setAgain] = useState(0);
  const [slow, setSlow] = useState(false);
  const fetch = useRef(fetcher);
  fetch.current = fetcher;
  const keep = options.keep ?? true;

  useEffect(() => {
    if (key === null) return;
    const abort = new AbortController();
    setState((s) => (keep || s.key === key ? { ...s, loading: true } : { key, loading: true }));
    fetch.current(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ key, data, at: new Date(), loading: false }),
      (error) => !abort.signal.aborted && setState((s) => ({ ...s, key, error, loading: false })),
    );
    return () => abort.abort();
  }, [key, again, options.turn]);

  // Another record must never show under a new key, not even for one frame.
  const fits = key !== null && (keep || state.key === key);
  const data = fits ? state.data : undefined;
  const error = fits ? state.error : undefined;
  const waiting = key !== null && data === undefined && error === undefined;
  useEffect(() => {
    if (!waiting) return setSlow(false);
    const timer = setTimeout(() => setSlow(true), 150);
    return () => clearTimeout(timer);
  }, [waiting, key]);

  const reload = useCallback(() => setAgain((n) => n + 1), []);
  const set = useCallback((data: T) => setState((s) => ({ ...s, data, error: undefined, at: new Date(), loading: false })), []);
  return { data, error, at: fits ? state.at : undefined, loading: waiting || state.loading, slow: slow && waiting, reload, set };
}
