import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { api } from "../../api/client";
import type { Summary, ToolStats } from "../../api/types";
import { useRange } from "../../data/range";
import { useResource } from "../../data/resource";
import { useStatus } from "../../data/shared";
import { bytes, count, duration, exact, number } from "../../lib/format";
import { params } from "../../lib/range";
import { href } from "../../router";
import { isCall, useTurn } from "./live";

/** Five figures: call time, overhead, size of definitions, search quality, activity log. */
export function Facts({ of: s }: { of: Summary }) {
  const [range] = useRange();
  const turn = useTurn(isCall, 10_000);
  const { data: status } = useStatus();
  const stats = useResource<ToolStats>(`stats ${range.since}`, (signal) => api.get("/tools/stats", { start_time: params(range, new Date()).start_time }, signal), { turn }).data;
  useVerified();
  const d = status?.definitions;
  const verified = status?.activity.verified;
  return (
    <dl class="facts sec2">
      <Fact name="Median call" small={s.calls > 0 && `p95 ${ms(s.p95_ms)}`}>{s.calls > 0 ? ms(s.p50_ms) : "–"}</Fact>
      <Fact name="MCPProxy overhead" small={s.calls > 0 && `p95 ${duration(s.own_p95_us / 1000)}`}>{s.calls > 0 ? duration(s.own_p50_us / 1000) : "–"}</Fact>
      <Fact name="Definitions loaded" small={d && `${d.all_bytes > d.loaded_bytes ? "instead of" : "of"} ${bytes(d.all_bytes)}`}>{d ? bytes(d.loaded_bytes) : "–"}</Fact>
      <Fact name="Top search hit" small={!!stats?.searches && `of calls after ${count(stats.searches, "search", "searches")}`}>{stats?.searches ? `${Math.round(stats.recall_1 * 100)} %` : "–"}</Fact>
      <Fact
        name="Activity log"
        small={status && <a href={href("activity")} title={verified ? `Verified ${exact(verified.at)}` : "Not verified since MCPProxy started"}>records, {verified ? (verified.ok ? "verified" : "not valid") : "not verified"}</a>}
      >
        {status?.activity.records === undefined ? "–" : number(status.activity.records)}
      </Fact>
    </dl>
  );
}

// The log has whole milliseconds.
const ms = (n: number) => (n < 1 ? "< 1 ms" : duration(n));

const day = 86_400_000;
let asked = false; // once per page load, since it reads the whole log

// Verifies the log if the last verification is older than a day.
function useVerified() {
  const status = useStatus();
  const at = status.data?.activity.verified?.at;
  const due = status.data !== undefined && (!at || Date.now() - Date.parse(at) > day);
  useEffect(() => {
    if (!due || asked) return;
    asked = true;
    api.get("/activity/verify").then(status.reload, () => {}); // the page still shows "not verified"
  }, [due]);
}

function Fact({ name, small, children }: { name: string; small: ComponentChildren; children: ComponentChildren }) {
  return <div><dt>{name}</dt><dd>{children}{small && <small>{small}</small>}</dd></div>;
}
