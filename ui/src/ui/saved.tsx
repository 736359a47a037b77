// Saved filters, stored in this browser.

import { useState } from "preact/hooks";
import { kept } from "../data/prefs";
import { longest, readSaved, saved, selecting } from "../lib/saved";
import { href, search, type PageName } from "../router";
import { Button } from "./button";
import { Icon } from "./icon";
import { Menu } from "./menu";

const stores = { activity: kept<string>("saved.activity", ""), tools: kept<string>("saved.tools", "") };
export type SavedOf = keyof typeof stores & PageName;

export function SavedFilters({ page }: { page: SavedOf }) {
  const store = stores[page];
  const all = readSaved(store.value);
  const now = selecting(search.value);
  const put = (list: typeof all) => (store.value = JSON.stringify(list));
  const is = all.find((s) => s.search === now);
  return (
    <Menu class="chip" role="dialog" name={is ? `Saved filters: ${is.name}` : "Saved filters"} label={<><Icon name="save" small />{is?.name ?? "Saved"}</>}>
      {all.map((s) => (
        <div class="row saved" key={s.name}>
          <a class="grow" href={href(page) + s.search} aria-current={s === is ? "true" : undefined}><span class="cut">{s.name}</span></a>
          <button type="button" class="x" data-keep aria-label={`Remove ${s.name}`} onClick={() => put(all.filter((o) => o !== s))}><Icon name="close" small /></button>
        </div>
      ))}
      {all.length === 0 && <p class="dim menu-head">No saved filters in this browser.</p>}
      {now && !is && <Name onSave={(name) => put(saved(all, name, now))} />}
      {!now && <p class="dim menu-head">Set a filter, then save it here.</p>}
    </Menu>
  );
}

function Name({ onSave }: { onSave: (name: string) => void }) {
  const [name, setName] = useState("");
  const submit = (e: Event) => {
    e.preventDefault();
    if (name.trim()) onSave(name);
  };
  return (
    <form class="save-as" data-keep onSubmit={submit}>
      <label class="lab">Filter name<input class="field" value={name} maxLength={longest} autocomplete="off" onInput={(e) => setName(e.currentTarget.value)} /></label>
      <Button small type="submit" disabled={!name.trim()}>Save</Button>
    </form>
  );
}
