// Sortable column heads, and the checkboxes of rows: for the tables of ui/table and for plain ones.

import type { ComponentChildren } from "preact";
import { direction, pressed, type Direction, type Order } from "../lib/order";
import { Icon } from "./icon";

export interface HeadOf { key: string; head: ComponentChildren; class?: string; order?: Direction }

/** The head of a column; a button if the column is sortable. */
export function Head({ of: c, order = "", onOrder }: { of: HeadOf; order?: Order | undefined; onOrder?: ((order: Order) => void) | undefined }) {
  const is = direction(order, c.key);
  const can = c.order && onOrder;
  return (
    <th scope="col" class={c.class} aria-sort={is ?? (can ? "none" : undefined)}>
      {can ? <button type="button" class="by" onClick={() => onOrder(pressed(order, c.key, c.order!))}>{c.head}{is && <Icon name={is === "ascending" ? "up" : "down"} small />}</button> : c.head}
    </th>
  );
}

/** The checkbox of a row; some: a part of its rows is selected. Without onChange the table listens. */
export function Tick({ name, on, some = false, onChange }: { name: string; on: boolean; some?: boolean; onChange?: (on: boolean) => void }) {
  return <input type="checkbox" class="tick" aria-label={name} checked={on} indeterminate={some && !on} onChange={onChange && ((e) => onChange(e.currentTarget.checked))} />;
}
