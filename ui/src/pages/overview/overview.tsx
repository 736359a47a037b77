import { useMemo, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Server, Summary } from "../../api/types";
import { now } from "../../data/now";
import { useRange } from "../../data/range";
import { useResource } from "../../data/resource";
import { useApprovals, usePending, useStatus } from "../../data/shared";
import { count, number } from "../../lib/format";
import { params, step } from "../../lib/range";
import { href } from "../../router";
import { ErrorPart, Loaded, Skeleton } from "../../ui/parts";
import { Facts } from "./facts";
import { Flow } from "./flow";
import { Lists } from "./lists";
import { isCall, useTurn } from "./live";
import { needsOf } from "./needs";
import { Todo } from "./todo";
import { heading, logState, works } from "./words";

/** The page once there are servers. */
export default function Overview({ servers }: { servers: Server[] }) {
  const [range] = useRange();
  const turn = useTurn(isCall);
  const summary = useResource<Summary>(
    `summary ${range.since} ${range.until}`,
    (signal) => api.get("/activity/summary", { ...params(range, new Date()), step: step(range, new Date()), group: "lane" }, signal),
    { turn },
  );
  return (
    <div class="page over">
      <Answer servers={servers} />
      <Loaded of={summary} title="Could not load call statistics" skeleton={<section class="sec"><Skeleton lines={8} /></section>}>
        {(s) => <><Flow of={s} /><Facts of={s} /></>}
      </Loaded>
      <Lists turn={turn} refused={summary.data?.refused} />
    </div>
  );
}

function Answer({ servers }: { servers: Server[] }) {
  const waiting = useApprovals();
  const status = useStatus();
  const calls = usePending();
  const needs = useMemo(() => waiting.data && needsOf(waiting.data, servers, status.data, now.value, calls.data), [waiting.data, servers, status.data, now.value, calls.data]);
  const [shown] = useState({ heading: "" });
  if (needs) shown.heading = heading(needs.length, servers);
  return (
    <>
      <div class="head">
        <div>
          <h1>{shown.heading || <span class="vh">Overview</span>}</h1>
          {status.data && (
            <p class="lead">
              <b>{number(servers.filter(works).length)}</b> of {number(servers.length)} {servers.length === 1 ? "server" : "servers"} ready, <b>{number(status.data.tools.callable)}</b> of{" "}
              {number(status.data.tools.total)} tools callable, {logState(status.data.activity)}.
              {status.data.held.leases > 0 && <> <a class="link" href={href("clients")}>{count(status.data.held.leases, "active lease")}</a>.</>}
            </p>
          )}
        </div>
      </div>
      {needs ? needs.length > 0 && <Todo needs={needs} /> : waiting.error !== undefined ? <ErrorPart title="Could not load approvals" error={waiting.error} onRetry={waiting.reload} /> : waiting.slow && <Skeleton />}
    </>
  );
}
