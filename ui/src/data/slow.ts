import { useEffect, useState } from "preact/hooks";

/** Reports whether loading takes long enough to show a placeholder. */
export function useSlow(waiting: boolean): boolean {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    if (!waiting) return setSlow(false);
    const timer = setTimeout(() => setSlow(true), 150);
    return () => clearTimeout(timer);
  }, [waiting]);
  return slow && waiting;
}
