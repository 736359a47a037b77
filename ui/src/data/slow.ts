import { useEffect, useState } from "preact/hooks";

/** Reports whether something has been waited for so long that the shape of what comes is shown. */
export function useSlow(waiting: boolean): boolean {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    if (!waiting) return setSlow(false);
    const timer = setTimeout(() => setSlow(true), 150);
    return () => clearTimeout(timer);
  }, [waiting]);
  return slow && waiting;
}
