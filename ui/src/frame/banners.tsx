import { lastAnswer, nextTry, offline } from "../api/connection";
import { tryNow } from "../api/events";
import { useStatus } from "../data/shared";
import { clock } from "../lib/format";
import { href } from "../router";
import { Button } from "../ui/button";
import { Banner } from "../ui/parts";
import { useEffect, useState } from "preact/hooks";
import { PauseBanner } from "./pause";

/** The banners above the page: offline, calls that are paused, an invalid configuration file, a degraded activity log. */
export function Banners() {
  const { data } = useStatus();
  return (
    <div class="banners">
      {offline.value && <Offline />}
      {data?.pause && <PauseBanner pause={data.pause} />}
      {data?.config_error && (
        <Banner icon="file" act={<Button small href={href("settings")}>Open</Button>}>
          The saved file has an error. The previous configuration stays active: {data.config_error}
        </Banner>
      )}
      {data?.activity.degraded && (
        <Banner icon="err" bad act={<Button small href={href("settings", { part: "diagnostics" })}>Details</Button>}>
          {data.activity.message ? sentence(data.activity.message) : "Could not write to the activity log."}
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
    <Banner icon="run" act={<Button small onClick={tryNow}>Retry now</Button>}>
      Could not reach MCPProxy. {lastAnswer.value && <>Showing data from {clock(lastAnswer.value)}. </>}
      {/* The countdown is hidden from screen readers: a live region would read it every second. */}
      <span aria-live="off">{wait > 0 ? `Retrying in ${wait} s.` : "Retrying now."}</span>
    </Banner>
  );
}
