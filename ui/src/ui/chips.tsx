// Filters as sentences: "Lane is write or destructive ×".

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useActions } from "../keys";
import { Button } from "./button";
import { Icon } from "./icon";
import { Menu } from "./menu";
import { SavedFilters, type SavedOf } from "./saved";

/** A toggle chip: All 10 · With findings 6. */
export function Chip({ on, count, children, onClick }: { on: boolean; count?: number; children: ComponentChildren; onClick: () => void }) {
  return <button type="button" class="chip" aria-pressed={on} onClick={onClick}>{children}{count !== undefined && <> <span class="num">{count}</span></>}</button>;
}

/** One active filter. */
export function FilterChip({ name, values, onRemove }: { name: string; values: readonly string[]; onRemove: () => void }) {
  return (
    <span class="chip on">
      <span>{name} is {values.map((v, i) => <>{i > 0 && " or "}<b>{v}</b></>)}</span>
      <button type="button" class="x" aria-label={`Remove filter ${name}`} onClick={onRemove}><Icon name="close" small /></button>
    </span>
  );
}

export interface Filter {
  key: string;
  /** The name on the chip: "Lane". */
  name: string;
  values: readonly string[];
  /** The options in the menu; absent: not in the menu. */
  options?: readonly { value: string; label?: string }[];
}

/**
 * The line of filters: children (a search field), chips, Filter menu (key f), Clear, end.
 * onChange gets the whole list of values of one filter. With onSearch the menu begins
 * with a search field that filters the options; the caller can add more.
 */
export function FilterBar({ filters, onChange, onClear, onSearch, saved, children, end }: {
  filters: readonly Filter[];
  onChange: (key: string, values: string[]) => void;
  onClear: () => void;
  onSearch?: (text: string) => void;
  /** The page for which filters can be saved. */
  saved?: SavedOf;
  children?: ComponentChildren;
  end?: ComponentChildren;
}) {
  const id = "filter-menu";
  useActions([{ key: "f", label: "Add filter", icon: "plus", run: () => document.getElementById(id)?.click() }]);
  const word = (f: Filter, v: string) => f.options?.find((o) => o.value === v)?.label ?? v;
  const on = filters.filter((f) => f.values.length > 0);
  return (
    <div class="filters" role="search">
      {children}
      {on.map((f) => <FilterChip key={f.key} name={f.name} values={f.values.map((v) => word(f, v))} onRemove={() => onChange(f.key, [])} />)}
      <Menu id={id} class="chip" role={onSearch ? "dialog" : "menu"} label={<><Icon name="plus" small />Filter</>} {...(onSearch ? { name: "Filter" } : {})}>
        <Choices filters={filters} onChange={onChange} onSearch={onSearch} />
      </Menu>
      {saved && <SavedFilters page={saved} />}
      {on.length > 0 && <Button kind="quiet" small onClick={onClear}>Clear</Button>}
      {end}
    </div>
  );
}

const mostShown = 8;

// Rendered while the menu is open, so that closing clears the text.
function Choices({ filters, onChange, onSearch }: { filters: readonly Filter[]; onChange: (key: string, values: string[]) => void; onSearch?: ((text: string) => void) | undefined }) {
  const [text, setText] = useState("");
  useEffect(() => onSearch?.(text), [text]);
  const fits = (o: { value: string; label?: string }) => (o.label ?? o.value).toLowerCase().includes(text.trim().toLowerCase());
  const groups = filters.map((f) => ({ f, options: (f.options ?? []).filter((o) => !onSearch || fits(o)) })).filter((g) => g.options.length > 0);
  const toggle = (f: Filter, v: string) => onChange(f.key, f.values.includes(v) ? f.values.filter((x) => x !== v) : [...f.values, v]);
  const onKey = (e: KeyboardEvent) => {
    const first = groups[0];
    if (e.key !== "Enter" || !text || !first) return;
    e.preventDefault();
    toggle(first.f, first.options[0]!.value);
    setText("");
  };
  return (
    <>
      {onSearch && <input class="field" type="search" value={text} aria-label="Find a filter" placeholder="Server, tool, client, session" autocomplete="off" spellcheck={false} onInput={(e) => setText(e.currentTarget.value)} onKeyDown={onKey} />}
      {groups.map(({ f, options }) => (
        <div role="group" aria-label={f.name} key={f.key}>
          <p class="dim menu-head">{f.name}</p>
          {(onSearch ? options.slice(0, mostShown) : options).map((o) => (
            <button type="button" role={onSearch ? "checkbox" : "menuitemcheckbox"} aria-checked={f.values.includes(o.value)} key={o.value} data-keep onClick={() => toggle(f, o.value)}>
              <span class="ticked"><Icon name="check" small /></span>{o.label ?? o.value}
            </button>
          ))}
        </div>
      ))}
      {onSearch && groups.length === 0 && <p class="dim menu-head" role="status">No matches.</p>}
    </>
  );
}
