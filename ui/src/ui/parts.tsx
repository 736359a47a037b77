// What a page or a part of it says when there is nothing, not yet, or not any more.

import type { ComponentChildren } from "preact";
import { explain } from "../api/client";
import { Button } from "./button";
import { copy } from "./copy";
import { Icon, type IconName } from "./icon";

/** A line above the page. bad is announced at once. */
export function Banner({ icon, bad = false, children, act }: { icon: IconName; bad?: boolean; children: ComponentChildren; act?: ComponentChildren }) {
  return <div class={bad ? "banner bad" : "banner"} role={bad ? "alert" : "status"}><Icon name={icon} /><span>{children}</span>{act}</div>;
}

/** Nothing there: what would be here, and the one thing to do. */
export function Empty({ title, children, acts, above }: { title: string; children?: ComponentChildren; acts?: ComponentChildren; above?: ComponentChildren }) {
  return <div class="empty">{above}<h2>{title}</h2>{children && <p>{children}</p>}{acts && <div class="row">{acts}</div>}</div>;
}

/** Nothing fits the filters: names them, and the nearest span with results when that is known. */
export function NothingFits({ what, filters, nearest, onNearest, onClear }: {
  /** "No record fits these filters" */
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

/** The part that an error hit: code, message, hint, Try again. */
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

/** The shape of lines that come. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  return <div role="status" aria-label="Loading">{Array.from({ length: lines }, (_, i) => <i key={i} class={`skel-line ${widths[i % widths.length]}`} />)}</div>;
}

/** The shape of rows that come, for the body of a table. */
export function SkeletonRows({ rows = 6, columns }: { rows?: number; columns: number }) {
  return <>{Array.from({ length: rows }, (_, r) => <tr key={r} class="skel" aria-hidden="true">{Array.from({ length: columns }, (_, c) => <td key={c}><i class={widths[(r + c) % widths.length]!} /></td>)}</tr>)}</>;
}

/**
 * Draws a resource: its data while there is any, a skeleton after 150 ms, the error otherwise.
 * <Loaded of={r} title="The log cannot be read">{(data) => …}</Loaded>
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
