// Filters as sentences: "Lane is write or destructive ×".

import type { ComponentChildren } from "preact";
import { useActions } from "../keys";
import { Button } from "./button";
import { Icon } from "./icon";
import { Menu } from "./menu";

/** A chip that is on or off: All 10 · With findings 6. */
export function Chip({ on, count, children, onClick }: { on: boolean; count?: number; children: ComponentChildren; onClick: () => void }) {
  return <button type="button" class="chip" aria-pressed={on} onClick={onClick}>{children}{count !== undefined && <> <span class="num">{count}</span></>}</button>;
}

/** One filter in force. */
export function FilterChip({ name, values, onRemove }: { name: string; values: readonly string[]; onRemove: () => void }) {
  return (
    <span class="chip on">
      <span>{name} is {values.map((v, i) => <>{i > 0 && " or "}<b>{v}</b></>)}</span>
      <button type="button" class="x" aria-label={`Remove the filter ${name}`} onClick={onRemove}><Icon name="close" small /></button>
    </span>
  );
}

export interface Filter {
  key: string;
  /** How the chip begins: "Lane". */
  name: string;
  values: readonly string[];
  /** What can be chosen; absent: not offered in the menu. */
  options?: readonly { value: string; label?: string }[];
}

/**
 * The line of filters: children (a search field), chips, Filter menu (key f), Clear, end.
 * onChange gets the whole list of values of one filter.
 */
export function FilterBar({ filters, onChange, onClear, children, end }: {
  filters: readonly Filter[];
  onChange: (key: string, values: string[]) => void;
  onClear: () => void;
  children?: ComponentChildren;
  end?: ComponentChildren;
}) {
  const id = "filter-menu";
  useActions([{ key: "f", label: "Add a filter", icon: "plus", run: () => document.getElementById(id)?.click() }]);
  const word = (f: Filter, v: string) => f.options?.find((o) => o.value === v)?.label ?? v;
  const on = filters.filter((f) => f.values.length > 0);
  return (
    <div class="filters" role="search">
      {children}
      {on.map((f) => <FilterChip key={f.key} name={f.name} values={f.values.map((v) => word(f, v))} onRemove={() => onChange(f.key, [])} />)}
      <Menu id={id} class="chip" label={<><Icon name="plus" small />Filter</>}>
        {filters.filter((f) => f.options?.length).map((f) => (
          <div role="group" aria-label={f.name} key={f.key}>
            <p class="dim menu-head">{f.name}</p>
            {f.options!.map((o) => {
              const has = f.values.includes(o.value);
              return (
                <button type="button" role="menuitemcheckbox" aria-checked={has} key={o.value} data-keep
                  onClick={() => onChange(f.key, has ? f.values.filter((v) => v !== o.value) : [...f.values, o.value])}>
                  <span class="ticked"><Icon name="check" small /></span>{o.label ?? o.value}
                </button>
              );
            })}
          </div>
        ))}
      </Menu>
      {on.length > 0 && <Button kind="quiet" small onClick={onClear}>Clear</Button>}
      {end}
    </div>
  );
}
