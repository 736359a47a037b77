import type { ComponentChildren, RefObject, TargetedMouseEvent } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import type { Rows } from "../data/window";
import { useActions } from "../keys";
import type { Direction, Order } from "../lib/order";
import { drawn, reveal, type Drawn } from "../lib/rows";
import { Head, Tick } from "./head";
import { memo } from "./memo";
import { SkeletonRows } from "./parts";

export interface Column<T> {
  key: string;
  head: ComponentChildren;
  /** The class of its cells and its head: the width, "n" for numbers. */
  class?: string;
  /** The first sort direction; absent: not sortable. */
  order?: Direction;
  cell: (row: T, i: number) => ComponentChildren;
  /** The filter that Alt and a click add. */
  filter?: (row: T) => { key: string; value: string } | undefined;
}

export interface TableProps<T> {
  caption: string;
  /** Keep the array identical between renders (module level or useMemo): rows are rendered again when it changes. */
  columns: readonly Column<T>[];
  rows: Rows<T>;
  rowKey: (row: T) => string;
  /** The key of the row whose drawer is open: j and k then open the next one. */
  open?: string;
  /** The index of that row, if known: when it changes, the row is scrolled into view. */
  openAt?: number;
  onOpen?: (row: T, i: number) => void;
  /** The sort order; a click on a head changes it. */
  order?: Order;
  onOrder?: (order: Order) => void;
  /** Rows can be selected with their checkboxes or Space, and all rows with the checkbox of the head. */
  picking?: Picking<T>;
  onFilter?: (filter: { key: string; value: string }) => void;
  /** Classes in addition to "t": "cards rec" makes two-line rows on phones. */
  class?: string;
  /** Shown instead of the body if there are no rows. */
  empty?: ComponentChildren;
  /** Makes a row a heading across all columns, of the same height as the others. */
  heading?: (row: T) => ComponentChildren | undefined;
  /** The content below a row, across all columns and of any height; for a few rows only. */
  detail?: (row: T) => ComponentChildren | undefined;
  /** Reports whether the first row is in view: live rows are added only then. */
  onTop?: (atTop: boolean) => void;
  /** Registers j, k, Enter and Space; false if another list on the page has them. */
  keys?: boolean;
}

export interface Picking<T> {
  picked: ReadonlySet<string>;
  /** Returns the name of a row; undefined if it is not selectable, such as a heading. It must be stable between renders. */
  name: (row: T) => string | undefined;
  pick: (row: T) => void;
  all: boolean;
  pickAll: (on: boolean) => void;
}

/** A table that draws only the rows in view, all of one height; it scrolls in its own box. */
export function Table<T>(p: TableProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const at = useRef(-1); // the row with the keyboard focus
  const view = useView(box, p.rows.total, p.onTop);
  const { first, last, before, after } = view.drawn;
  const total = p.rows.total;
  useEffect(() => p.rows.want(first, last), [p.rows, first, last]);
  useEffect(() => {
    const i = p.openAt ?? -1;
    if (p.open === undefined || i < 0) return;
    // Rows and details are measured in the first frames.
    let frame = requestAnimationFrame(() => (frame = requestAnimationFrame(() => view.show(i))));
    return () => cancelAnimationFrame(frame);
  }, [p.open]);

  const focus = (i: number) => {
    at.current = i;
    view.show(i);
    // The row may only be drawn with the next frame.
    requestAnimationFrame(() => requestAnimationFrame(() => focusRow(box.current, i)));
  };
  const move = (by: number) => {
    if (total === 0) return;
    let from = at.current;
    if (p.open !== undefined) for (let i = first; i < last; i++) if (keyAt(p, i) === p.open) from = i;
    const within = (i: number) => Math.min(Math.max(i, 0), total - 1);
    let to = within(from + by);
    // With a drawer open, headings of groups are skipped.
    if (p.open !== undefined && isHeading(p, to)) to = isHeading(p, within(to + by)) ? from : within(to + by);
    focus(to);
    const row = p.rows.row(to);
    if (p.open !== undefined && row !== undefined) p.onOpen?.(row, to);
  };
  const act = (f: ((row: T, i: number) => void) | undefined) => {
    const row = at.current >= 0 ? p.rows.row(at.current) : undefined;
    if (row !== undefined) f?.(row, at.current);
  };
  const on = p.keys !== false && total > 0;
  const pick = p.picking && ((row: T) => p.picking!.name(row) !== undefined && p.picking!.pick(row));
  useActions([
    { key: "j", label: "Next", when: on, run: () => move(1) },
    { key: "k", label: "Previous", when: on, run: () => move(-1) },
    { key: "Enter", label: "Open", when: on && !!p.onOpen, run: () => act(p.onOpen) },
    { key: " ", label: "Select", when: on && !!pick, run: () => act(pick) },
  ]);

  const body: ComponentChildren[] = [];
  for (let i = first; i < last; i++) {
    const row = view.hasty ? undefined : p.rows.row(i);
    const key = row === undefined ? undefined : p.rowKey(row);
    body.push(
      <Row key={key ?? `#${i - first}`} i={i} row={row} columns={p.columns as readonly Column<unknown>[]} heading={p.heading as RowProps["heading"]} detail={p.detail as RowProps["detail"]} open={key !== undefined && key === p.open} name={p.picking?.name as RowProps["name"]} picked={key !== undefined && !!p.picking?.picked.has(key)} />,
    );
  }
  const width = p.columns.length + (p.picking ? 1 : 0);
  const ticked = (e: Event) => {
    const i = indexOf((e.target as Element).closest("input.tick"));
    const row = i === undefined ? undefined : p.rows.row(i);
    if (row !== undefined) pick?.(row);
  };
  return (
    <div class="log" ref={box} onScroll={view.scrolled} tabIndex={-1} onClick={(e) => click(e, p)} onChange={ticked} onFocusIn={(e) => (at.current = indexOf(e.target) ?? at.current)}>
      <table class={`t ${p.class ?? ""}`} aria-rowcount={p.rows.known ? total + 1 : -1}>
        <caption><span class="vh">{p.caption}</span></caption>
        <thead>
          <tr>
            {p.picking && <th class="c-tick"><Tick name="Select all" on={p.picking.all} some={p.picking.picked.size > 0} onChange={p.picking.pickAll} /></th>}
            {p.columns.map((c) => <Head key={c.key} of={c} order={p.order} onOrder={p.onOrder} />)}
          </tr>
        </thead>
        <tbody>
          <Spacer height={before} columns={width} key="before" />
          {body}
          <Spacer height={after} columns={width} key="after" />
        </tbody>
      </table>
      {p.rows.known && total === 0 && p.empty}
    </div>
  );
}

function isHeading<T>(p: TableProps<T>, i: number): boolean {
  const row = p.rows.row(i);
  return row !== undefined && p.heading?.(row) !== undefined;
}

function keyAt<T>(p: TableProps<T>, i: number): string | undefined {
  const row = p.rows.row(i);
  return row === undefined ? undefined : p.rowKey(row);
}

function indexOf(target: EventTarget | null): number | undefined {
  const i = (target as Element | null)?.closest?.<HTMLElement>("tr[data-i]")?.dataset.i;
  return i === undefined ? undefined : Number(i);
}

function focusRow(box: HTMLElement | null, i: number): void {
  const row = box?.querySelector<HTMLElement>(`tr[data-i="${i}"]`);
  (row?.querySelector<HTMLElement>("a, button") ?? row)?.focus({ preventScroll: true });
}

function click<T>(e: TargetedMouseEvent<HTMLElement>, p: TableProps<T>): void {
  const i = indexOf(e.target);
  const row = i === undefined ? undefined : p.rows.row(i);
  if (i === undefined || row === undefined) return;
  if (e.altKey && p.onFilter) {
    const cell = (e.target as Element).closest("td");
    const filter = cell && p.columns[cell.cellIndex - (p.picking ? 1 : 0)]?.filter?.(row);
    if (!filter) return;
    e.preventDefault();
    p.onFilter(filter);
    return;
  }
  // A link or button in the row has its own action. Selecting text is not a click.
  if ((e.target as Element).closest("a, button, input, label, summary") || getSelection()?.type === "Range" || e.ctrlKey || e.metaKey || e.shiftKey) return;
  p.onOpen?.(row, i);
}

interface RowProps { i: number; row: unknown; columns: readonly Column<unknown>[]; heading?: (row: unknown) => ComponentChildren | undefined; detail?: (row: unknown) => ComponentChildren | undefined; open: boolean; name?: (row: unknown) => string | undefined; picked: boolean }

const Row = memo(({ i, row, columns, heading, detail, open, name, picked }: RowProps) => {
  const width = columns.length + (name ? 1 : 0);
  if (row === undefined) return <SkeletonRows rows={1} columns={width} />;
  const title = heading?.(row);
  if (title !== undefined) return <tr class="group" data-i={i} aria-rowindex={i + 2} tabIndex={-1}><th colSpan={width} scope="rowgroup">{title}</th></tr>;
  const below = detail?.(row);
  return (
    <>
      <tr data-i={i} aria-rowindex={i + 2} aria-selected={open || undefined} class={(picked ? "picked" : "") + (below ? " opened" : "") || undefined} tabIndex={-1}>
        {name && <td class="c-tick"><Tick name={`Select ${name(row) ?? ""}`} on={picked} /></td>}
        <Cells row={row} columns={columns} i={columns.some((c) => c.cell.length > 1) ? i : 0} />
      </tr>
      {below && <tr class="detail" data-below={i}><td colSpan={width}>{below}</td></tr>}
    </>
  );
});

// Rows below new live rows get a different index, but the same cells.
const Cells = memo(({ row, columns, i }: { row: unknown; columns: readonly Column<unknown>[]; i: number }) => (
  <>{columns.map((c) => <td key={c.key} class={c.class}>{c.cell(row, i)}</td>)}</>
));

function Spacer({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null;
  return <tr class="spacer" aria-hidden="true"><td colSpan={columns} style={{ height: `${height}px` }} /></tr>;
}

const headHeight = 30;

// Measures the rendered details; those out of view keep their height. Reports whether one changed.
function weigh(box: HTMLElement | null, { first, last }: Drawn, extras: Map<number, number>): boolean {
  const now = new Map([...(box?.querySelectorAll<HTMLElement>("tr[data-below]") ?? [])].map((tr) => [Number(tr.dataset.below), tr.getBoundingClientRect().height]));
  let changed = false;
  for (const i of extras.keys()) if (i >= first && i < last && !now.has(i)) changed = extras.delete(i);
  for (const [i, px] of now) {
    if (Math.abs((extras.get(i) ?? 0) - px) < 0.5) continue;
    extras.set(i, px);
    changed = true;
  }
  return changed;
}

// Returns the rows in view of the box. Row height is measured, since rows are higher on phones and touch screens.
function useView(box: RefObject<HTMLDivElement | null>, total: number, onTop?: (atTop: boolean) => void) {
  const [, draw] = useReducer((n: number, _: void) => n + 1, 0);
  const height = useRef(32);
  const now = useRef<Drawn>({ first: 0, last: 0, before: 0, after: 0 });
  const top = useRef(true);
  const extras = useRef<Map<number, number>>(new Map());
  const compute = () => drawn(total, height.current, box.current?.scrollTop ?? 0, box.current?.clientHeight ?? 900, undefined, extras.current);
  now.current = compute();

  // Whether the last frame scrolled by more than half of the view: then no one can read the rows, and
  // rendering them would delay the next frame. They are rendered when scrolling slows down.
  const hasty = useRef(false);
  const asked = useRef(false); // set by show: a jump to a row always renders the row
  const frame = useRef(0);
  const look = () => {
    frame.current = 0;
    const next = compute();
    const { first, last } = now.current;
    const was = hasty.current;
    hasty.current = !asked.current && last > first && 2 * Math.abs(next.first - first) * height.current > (box.current?.clientHeight ?? Infinity);
    asked.current = false;
    if (hasty.current) frame.current = requestAnimationFrame(() => latest.current());
    if (weigh(box.current, now.current, extras.current)) return draw();
    if (was !== hasty.current || next.first !== first || next.last !== last) draw();
    const atTop = (box.current?.scrollTop ?? 0) < height.current;
    if (atTop !== top.current) onTop?.((top.current = atTop));
  };
  const latest = useRef(look);
  latest.current = look;
  useLayoutEffect(() => {
    const measure = () => {
      const row = box.current?.querySelector<HTMLElement>("tr[data-i]:not(.group)");
      const h = row?.getBoundingClientRect().height ?? 0;
      if (h > 8 && Math.abs(h - height.current) > 0.5) {
        height.current = h;
        draw();
      } else latest.current();
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(box.current!);
    watch.observe(box.current!.querySelector("table")!); // a detail can grow
    return () => {
      watch.disconnect();
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [total > 0]);
  return {
    drawn: now.current,
    hasty: hasty.current,
    scrolled: () => void (frame.current ||= requestAnimationFrame(() => latest.current())),
    show: (i: number) => {
      const b = box.current!;
      const to = reveal(i, total, height.current, b.scrollTop, b.clientHeight, headHeight, extras.current);
      if (to === b.scrollTop) return;
      asked.current = true;
      b.scrollTop = to;
    },
  };
}
