import { useState } from "preact/hooks";
import { Button } from "./button";
import { toast } from "./toast";

/** Copies text; reports whether the browser allowed it. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast({ text: "The browser blocked copying. Select the text and copy it." });
    return false;
  }
}

/** A button that copies text and then shows a check mark. */
export function CopyButton({ text, label, children }: { text: string | (() => string); label: string; children?: string }) {
  const [done, setDone] = useState(false);
  const run = async () => {
    if (!(await copy(typeof text === "string" ? text : text()))) return;
    setDone(true);
    setTimeout(setDone, 1500, false);
  };
  return <Button kind="quiet" small icon={done ? "check" : "copy"} label={children ? undefined : done ? "Copied" : label} title={label} onClick={run}>{children && (done ? "Copied" : children)}</Button>;
}
