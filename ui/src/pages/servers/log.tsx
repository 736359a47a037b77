// The log of a server, followed live while it is open.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { explain, path, ProblemError } from "../../api/client";
import { stream } from "../../api/stream";
import type { LogLine } from "../../api/types";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { DrawerPart } from "../../ui/drawer";
import { LogLines } from "./lines";
import { joined, kept } from "./tail";

const first = 500;
const retry = 2000;
const gather = 100;

interface Shown { lines: readonly LogLine[]; state: "reading" | "live" | "broken"; error?: unknown }

/** Follows the log of a server and reconnects a broken stream. While paused, new lines are held back. */
function useLog(name: string, paused: boolean): Shown & { held: number } {
  const [shown, setShown] = useState<Shown>({ lines: [], state: "reading" });
  const [held, setHeld] = useState<readonly LogLine[]>([]);
  const hold = useRef(paused);
  hold.current = paused;
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let soon = 0;
    let fresh = true; // the first lines of a stream replace those shown
    let queue: LogLine[] = [];
    const flush = () => {
      soon = 0;
      const come = queue;
      queue = [];
      if (hold.current) return setHeld((h) => joined(h, come));
      const anew = fresh;
      fresh = false;
      setShown((s) => ({ lines: joined(anew ? [] : s.lines, come), state: "live" }));
    };
    const read = async () => {
      fresh = true;
      try {
        await stream(path`/servers/${name}/logs/follow`, (e) => {
          queue = joined(queue, [JSON.parse(e.data) as LogLine]) as LogLine[];
          soon ||= window.setTimeout(flush, gather);
        }, { signal: abort.signal, query: { lines: first }, onOpen: () => setShown((s) => ({ lines: s.lines, state: "live" })) });
      } catch (error) {
        if (abort.signal.aborted) return;
        setShown((s) => ({ lines: s.lines, state: "broken", error }));
        // A server that was removed has no log.
        if (error instanceof ProblemError && error.status === 404) return;
      }
      again();
    };
    // A new stream repeats lines that are shown already, so not while paused.
    const again = () => void (timer = window.setTimeout(() => (abort.signal.aborted ? undefined : hold.current ? again() : void read()), retry));
    setShown({ lines: [], state: "reading" });
    setHeld([]);
    void read();
    return () => {
      abort.abort();
      clearTimeout(timer);
      clearTimeout(soon);
    };
  }, [name]);
  useEffect(() => {
    if (paused || held.length === 0) return;
    setShown((s) => ({ ...s, lines: joined(s.lines, held) }));
    setHeld([]);
  }, [paused]);
  return { ...shown, held: held.length };
}

/** The log in the drawer; it keeps scrolling while the end is in view. */
export function LogPart({ name }: { name: string }) {
  const [paused, pause] = useState(false);
  const log = useLog(name, paused);
  const box = useRef<HTMLPreElement | null>(null);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    const b = box.current;
    if (b && atEnd.current) b.scrollTop = b.scrollHeight;
  }, [log.lines]);
  const text = () => log.lines.map((l) => `${l.at ?? ""} ${l.stream} ${l.text}`.trim()).join("\n");
  const state = log.state === "broken" ? "disconnected" : paused ? (log.held ? `paused, ${log.held >= kept ? "many" : log.held} newer` : "paused") : log.state === "live" ? "live" : "";
  return (
    <DrawerPart title="Log" end={<><span class="dim" aria-live="polite">{state}</span><Button kind="quiet" small icon={paused ? "play" : "pause"} pressed={paused} onClick={() => pause(!paused)}>{paused ? "Resume" : "Pause"}</Button><CopyButton text={text} label="Copy log" /></>}>
      {log.lines.length > 0 && <LogLines lines={log.lines} stream label={`Log of ${name}`} refTo={box} onScroll={(b) => {
        atEnd.current = b.scrollTop + b.clientHeight > b.scrollHeight - 24;
      }} />}
      {log.lines.length === 0 && log.state === "live" && <p class="dim">No output yet. New lines appear here.</p>}
      {log.state === "broken" && log.error !== undefined && <p class="error-line">{explain(log.error).message} {explain(log.error).hint}</p>}
    </DrawerPart>
  );
}
