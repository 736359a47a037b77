import { useEffect } from "preact/hooks";
import { carried } from "../data/range";
import { useApprovals, usePending, useStatus, waitingCount } from "../data/shared";
import { now } from "../data/now";
import { span } from "../lib/format";
import { href, place } from "../router";
import { announce } from "../ui/announce";
import { Button } from "../ui/button";
import { CopyButton } from "../ui/copy";
import { Icon } from "../ui/icon";
import { groups, pageOf, type PageInfo } from "./pages";
import { switchTheme } from "./theme";

/** The pages with the number of pending items; below, the address for clients, version, theme. */
export function Sidebar({ onMore }: { onMore: () => void }) {
  const calls = usePending().data;
  const waiting = waitingCount(useApprovals().data, calls);
  const newest = calls?.at(-1);
  // Screen readers announce a new pending call.
  useEffect(() => newest && announce(`${newest.name} needs approval`), [newest?.id]);
  const later = pageOf(place.value.page)?.later;
  return (
    <nav class="side" aria-label="Pages">
      <a class="brand" href={href("overview")} title="MCPProxy"><Icon name="logo" /><span>MCPProxy</span></a>
      {groups.map((group, g) => (
        <ul class="nav" key={g}>
          {group.map((p) => <Entry key={p.name} page={p} count={p.name === "approvals" ? waiting : 0} />)}
          {g === groups.length - 1 && (
            <li class="only-small m">
              <button type="button" class="tab" aria-haspopup="dialog" aria-current={later ? "page" : undefined} onClick={onMore}><Icon name="menu" /><span>More</span></button>
            </li>
          )}
        </ul>
      ))}
      <Foot />
    </nav>
  );
}

function Entry({ page, count }: { page: PageInfo; count: number }) {
  return (
    <li class={page.later ? "later" : undefined}>
      <a href={href(page.name, carried(page.name))} aria-current={place.value.page === page.name ? "page" : undefined} title={page.title} aria-label={count > 0 ? `${page.title}, ${count} pending` : page.title}>
        <Icon name={page.icon} /><span>{page.title}</span>{" "}
        {count > 0 && <span class="count">{count > 999 ? "999+" : count}</span>}
      </a>
    </li>
  );
}

/** Returns the address that clients connect to, without its scheme. */
export function useAddress(): string {
  const { data } = useStatus();
  const mcp = data?.surfaces.find((s) => s.name === "mcp");
  return mcp?.address ?? "";
}

function Foot() {
  const { data } = useStatus();
  const address = useAddress();
  return (
    <div class="foot">
      {address && <div class="addr"><code class="cut">{address.replace(/^https?:\/\//, "")}</code><CopyButton text={address} label="Copy address" /></div>}
      <div class="row">
        {data && <span class="cut">{data.version}, up {span((now.value.getTime() - Date.parse(data.started_at)) / 1000)}</span>}
        <Button kind="quiet" small icon="sun" label="Toggle theme" onClick={switchTheme} />
      </div>
    </div>
  );
}
