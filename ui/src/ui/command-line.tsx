import { CopyButton } from "./copy";
import { Visible } from "./words";

/** A command to run in a terminal, and a button that copies it. */
export function CommandLine({ text }: { text: string }) {
  return <div class="command-line"><pre class="json cmd wrap" tabIndex={0} role="group" aria-label="Command"><Visible text={text} /></pre><CopyButton text={text} label="Copy command" /></div>;
}
