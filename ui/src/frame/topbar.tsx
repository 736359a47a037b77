import { useState } from "preact/hooks";
import { live } from "../api/events";
import { offline } from "../api/connection";
import { paused } from "../data/live";
import { now } from "../data/now";
import { rangePages, useRange, useRangeKnown } from "../data/range";
import { all, ends, label, localTime, periods, type Range } from "../lib/range";
import { place } from "../router";
import { Button } from "../ui/button";
import { Icon } from "../ui/icon";
import { State } from "../ui/marks";
import { Menu } from "../ui/menu";
import { pageOf } from "./pages";
import { PauseButton } from "./pause";

/** Search, time range, live state, help. */
export function TopBar({ onSearch, onHelp }: { onSearch: () => void; onHelp: () => void }) {
  const { page } = place.value;
  return (
    <header class="bar">
      <span class="only-small small-brand"><Icon name="logo" /></span>
      <span class="only-small strong">{pageOf(page)?.title ?? "MCPProxy"}</span>
      <button type="button" class="find hide-small" onClick={onSearch} aria-haspopup="dialog" aria-keyshortcuts="Control+K">
        <Icon name="search" small /><span class="grow">Search or run a command</span><kbd aria-hidden="true">Ctrl</kbd><kbd aria-hidden="true">K</kbd>
      </button>
      <div class="end">
        {rangePages.includes(page) && !new URLSearchParams(place.value.search).has("start") && <RangeMenu />}
        <Button kind="quiet" small large icon="search" label="Search" class="only-small" onClick={onSearch} />
        <PauseButton />
        <span class="hide-small row"><LiveState /></span>
        <button type="button" class="btn quiet sm ico hide-small" aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick={onHelp}><kbd aria-hidden="true">?</kbd></button>
      </div>
    </header>
  );
}

function LiveState() {
  if (offline.value) return <State kind="bad">Offline</State>;
  if (paused.value) return <State kind="idle">Paused</State>;
  if (live.value === "live") return <State kind="ready">Live</State>;
  return live.value === "none" ? <State kind="idle">Every 5 s</State> : <State kind="moving">Connecting</State>;
}

function RangeMenu() {
  const [range, setRange] = useRange();
  if (!useRangeKnown(place.value.page)) return null;
  return (
    <Menu end name={undefined} label={<><Icon name="clock" small /><span class="cut">{label(range, now.value)}</span><Icon name="down" small /></>}>
      {[...periods, all].map((p) => (
        <button type="button" role="menuitemradio" key={p} aria-checked={range.since === p} onClick={() => setRange({ since: p, until: "" })}>
          <span class="ticked"><Icon name="check" small /></span>{label({ since: p, until: "" }, now.value)}
        </button>
      ))}
      <Custom range={range} onRange={setRange} />
    </Menu>
  );
}

// Start and end in local time; without an end, until now.
function Custom({ range, onRange }: { range: Range; onRange: (r: Range) => void }) {
  const { from, to } = ends(range, now.peek());
  const [since, setSince] = useState(localTime(from));
  const [until, setUntil] = useState(range.until ? localTime(to) : "");
  const good = since !== "" && (until === "" || since < until);
  const submit = (e: Event) => {
    e.preventDefault();
    if (good) onRange({ since: new Date(since).toISOString(), until: until && new Date(until).toISOString() });
  };
  return (
    <form class="custom-range" onSubmit={submit}>
      <label>From<input class="field" type="datetime-local" value={since} required onInput={(e) => setSince(e.currentTarget.value)} /></label>
      <label>To<input class="field" type="datetime-local" value={until} onInput={(e) => setUntil(e.currentTarget.value)} /></label>
      <Button small type="submit" disabled={!good}>Apply</Button>
    </form>
  );
}
