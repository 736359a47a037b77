// The data of a page: old data stays while new data is fetched, and nothing is said
// about loading for 150 ms.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Resource<T> {
  data?: T;
  /** Of the last try; data may still be there, older. */
  error?: unknown;
  loading: boolean;
  /** Nothing to show since 150 ms: time for a skeleton. */
  slow: boolean;
  /** When data came. */
  at?: Date;
  /** Asks again. */
  reload: () => void;
  /** Replaces data at once, with the answer of an action. */
  set: (data: T) => void;
}

interface State<T> { key: string; data?: T; error?: unknown; at?: Date; loading: boolean }

/**
 * Returns the fetcher's answer for key, asked again whenever key or turn changes.
 * A null key asks nothing. With a new key the data of the old one stays until the
 * answer; give keep = false where that would be wrong, such as another record.
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
