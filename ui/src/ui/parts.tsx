// The empty, loading and error states of pages and their parts.

import type { ComponentChildren } from "preact";
import { explain } from "../api/client";
import { Button } from "./button";
import { copy } from "./copy";
import { Icon, type IconName } from "./icon";

/** A line above the page. bad is announced at once. */
export function Banner({ icon, bad = false, children, act }: { icon: IconName; bad?: boolean; children: ComponentChildren; act?: ComponentChildren }) {
  return <div class={bad ? "banner bad" : "banner"} role={bad ? "alert" : "status"}><Icon name={icon} /><span>{children}</span>{act}</div>;
}

/** An empty state: what would be here, and the next step. */
export function Empty({ title, children, acts, above }: { title: string; children?: ComponentChildren; acts?: ComponentChildren; above?: ComponentChildren }) {
  return <div class="empty">{above}<h2>{title}</h2>{children && <p>{children}</p>}{acts && <div class="row">{acts}</div>}</div>;
}

/** No matches: names the filters, and the nearest time range with results if known. */
export function NothingFits({ what, filters, nearest, onNearest, onClear }: {
  /** "No records match these filters" */
  what: string;
  /** "Lane is destructive, and client is Codex, in the last 24 hours." */
  filters: string;
  nearest?: { text: string; label: string };
  onNearest?: () => void;
  onClear: () => void;
}) {
  return (
    <Empty title={what} acts={<>{nearest && <Button onClick={onNearest}>{nearest.label}</Button>}<Button kind="quiet" onClick={onClear}>Clear filters</Button></>}>
      {filters}{nearest && " " + nearest.text}
    </Empty>
  );
}

/** An error state: code, message, hint, and a retry button. */
export function ErrorPart({ title, error, onRetry }: { title: string; error: unknown; onRetry: () => void }) {
  const { code, message, hint } = explain(error);
  const text = (code ? code + ": " : "") + message + (hint ? " " + hint : "");
  return (
    <div role="alert">
      <Empty title={title} acts={<><Button onClick={onRetry}>Try again</Button><Button kind="quiet" onClick={() => copy(`${title}\n${text}`)}>Copy details</Button></>}>{text}</Empty>
    </div>
  );
}

const widths = ["w3", "w2", "w4", "w1", "w2", "w3"];

/** The placeholder of lines that load. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  return <div role="status" aria-label="Loading">{Array.from({ length: lines }, (_, i) => <i key={i} class={`skel-line ${widths[i % widths.length]}`} />)}</div>;
}

/** The placeholder of table rows that load. */
export function SkeletonRows({ rows = 6, columns }: { rows?: number; columns: number }) {
  return <>{Array.from({ length: rows }, (_, r) => <tr key={r} class="skel" aria-hidden="true">{Array.from({ length: columns }, (_, c) => <td key={c}><i class={widths[(r + c) % widths.length]!} /></td>)}</tr>)}</>;
}

/**
 * Draws a resource: its data while there is any, a skeleton after 150 ms, the error otherwise.
 * <Loaded of={r} title="Could not load activity">{(data) => …}</Loaded>
 */
export function Loaded<T>({ of, title, skeleton, children }: {
  of: { data?: T; error?: unknown; slow: boolean; reload: () => void };
  title: string;
  skeleton?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error !== undefined) return <ErrorPart title={title} error={of.error} onRetry={of.reload} />;
  return <>{of.slow && (skeleton ?? <Skeleton />)}</>;
}
