// The Overview page: what needs attention, and figures. Without servers: the first run.

import { useEffect, useState } from "preact/hooks";
import type { FunctionComponent } from "preact";
import { useServers } from "../../data/shared";
import { flag } from "../../lib/query";
import { useQuery } from "../../router";
import { Loaded } from "../../ui/parts";
import Overview from "./overview";
import "./overview.css";

// The URL says that the first run is shown, so that it continues when there are servers.
const schema = { start: flag() };

export default function Page() {
  const servers = useServers();
  const [{ start }, setQ] = useQuery(schema);
  const none = servers.data?.length === 0;
  useEffect(() => {
    if (none && !start) setQ({ start: true }, { replace: true });
  }, [none, start]);
  if (servers.data && (none || start)) return <FirstRun servers={servers.data} onEnd={() => setQ({ start: false })} />;
  return <Loaded of={servers} title="Could not load servers" skeleton={<div class="page"><h1 class="vh">Overview</h1></div>}>{(all) => <Overview servers={all} />}</Loaded>;
}

type Start = FunctionComponent<{ servers: import("../../api/types").Server[]; onEnd: () => void }>;

// Loaded separately, since only new users need it.
function FirstRun(props: Parameters<Start>[0]) {
  const [loaded, setLoaded] = useState<{ Start: Start }>();
  useEffect(() => void import("./start/index").then((m) => setLoaded({ Start: m.default })), []);
  return loaded ? <loaded.Start {...props} /> : null;
}
