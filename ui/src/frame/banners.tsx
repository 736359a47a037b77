import { lastAnswer, nextTry, offline } from "../api/connection";
import { tryNow } from "../api/events";
import { useStatus } from "../data/shared";
import { clock } from "../lib/format";
import { href } from "../router";
import { Button } from "../ui/button";
import { Banner } from "../ui/parts";
import { useEffect, useState } from "preact/hooks";

/** What interrupts, above the page and never over it: offline, a refused file, a log in trouble. */
export function Banners() {
  const { data } = useStatus();
  return (
    <div class="banners">
      {offline.value && <Offline />}
      {data?.config_error && (
        <Banner icon="file" act={<Button small href={href("settings")}>Open</Button>}>
          The saved file has a mistake, so the configuration before it stays in force: {data.config_error}
        </Banner>
      )}
      {data?.activity.degraded && (
        <Banner icon="err" bad act={<Button small href={href("settings", { part: "diagnostics" })}>What to do</Button>}>
          {data.activity.message ? sentence(data.activity.message) : "The log cannot be written."}
        </Banner>
      )}
    </div>
  );
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

function Offline() {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const wait = nextTry.value ? Math.ceil((nextTry.value.getTime() - Date.now()) / 1000) : 0;
  return (
    <Banner icon="run" act={<Button small onClick={tryNow}>Try now</Button>}>
      MCPProxy does not answer. {lastAnswer.value && <>You see what was known at {clock(lastAnswer.value)}; </>}
      {/* The countdown is for eyes only: a live region would read it each second. */}
      <span aria-live="off">{wait > 0 ? `it is tried again in ${wait} s.` : "it is tried again now."}</span>
    </Banner>
  );
}
