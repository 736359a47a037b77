// The order of a table: the key of a column, with "-" before it for descending, or "" for the default order. Pure.

import { own } from "./own";
import type { Codec } from "./query";

export type Order = string;
export type Direction = "ascending" | "descending";
/** The sort value of a row; undefined comes last in both directions. */
export type Value = string | number | undefined;

/** Reads the order of a table from the URL. A key that is not sortable is ignored. */
export function ordering(keys: readonly string[]): Codec<Order> {
  return { read: (t) => (t && keys.includes(keyOf(t)) ? t : ""), write: (v) => v || null };
}

export function keyOf(order: Order): string {
  return order.replace(/^-/, "");
}

/** Returns the sort direction of a column; undefined if the table is not sorted by it. */
export function direction(order: Order, key: string): Direction | undefined {
  return order === key ? "ascending" : order === "-" + key ? "descending" : undefined;
}

/** Returns the order after a click on a column head: the default direction of the column, then the other one, then the default order. */
export function pressed(order: Order, key: string, first: Direction): Order {
  const words = first === "ascending" ? [key, "-" + key] : ["-" + key, key];
  return words[words.indexOf(order) + 1] ?? "";
}

const compare = new Intl.Collator("en", { numeric: true }).compare;

/** Returns the rows in an order; equal rows keep their order. */
export function sorted<T>(rows: readonly T[], order: Order, by: Readonly<Record<string, (row: T) => Value>>): readonly T[] {
  const value = own(by, keyOf(order));
  if (!order || !value) return rows;
  const sign = order.startsWith("-") ? -1 : 1;
  return rows.toSorted((x, y) => {
    const [a, b] = [value(x), value(y)];
    if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : compare(String(a), String(b)));
  });
}
