import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asking, type Asking } from "../api/presence";

/** The signature dialogs, one after another, above all other content. */
export function Permits() {
  const [Permit, setPermit] = useState<FunctionComponent<{ of: Asking }>>();
  const first = asking.value[0];
  useEffect(() => {
    if (first && !Permit) void import("./permit").then((m) => setPermit(() => m.Permit), (error) => first.end(undefined, error));
  }, [first, Permit]);
  return first && Permit ? <Permit key={first.asked.statement.nonce} of={first} /> : null;
}
