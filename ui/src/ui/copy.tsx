import { useState } from "preact/hooks";
import { Button } from "./button";
import { toast } from "./toast";

/** Copies text; reports whether the browser let it. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast({ text: "The browser did not let the page copy. Select the text instead." });
    return false;
  }
}

/** A button that copies text and says so with a tick. */
export function CopyButton({ text, label, children }: { text: string | (() => string); label: string; children?: string }) {
  const [done, setDone] = useState(false);
  const run = async () => {
    if (!(await copy(typeof text === "string" ? text : text()))) return;
    setDone(true);
    setTimeout(setDone, 1500, false);
  };
  return <Button kind="quiet" small icon={done ? "check" : "copy"} label={children ? undefined : done ? "Copied" : label} title={label} onClick={run}>{children && (done ? "Copied" : children)}</Button>;
}
