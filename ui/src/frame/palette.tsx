import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useServers } from "../data/shared";
import { actions, caps } from "../keys";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { Lane, ToolName } from "../ui/marks";
import { Tag } from "../ui/marks";
import { local, useTools, type Entry } from "./found";

/** Ctrl K: pages, commands, servers, tools and records in one list. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const servers = useServers().data ?? [];
  const offered = useRef(actions.peek()).current; // the actions of the page, not of this dialog
  const tools = useTools(text);
  const groups = useMemo(() => [...(tools.length ? [{ title: "Tools", entries: tools }] : []), ...local(text, servers, offered)], [text, servers, tools]);
  const flat = groups.flatMap((g) => g.entries);
  const current = Math.min(at, Math.max(0, flat.length - 1));
  useEffect(() => setAt(0), [text]);
  useEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [current, flat.length]);

  const run = (e: Entry | undefined) => {
    if (!e) return;
    onClose();
    // After the dialog has returned the focus.
    setTimeout(e.run);
  };
  const onKey = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && flat.length) {
      e.preventDefault();
      setAt((current + step + flat.length) % flat.length);
    } else if (e.key === "Enter" && !e.isComposing) {
      e.preventDefault();
      run(flat[current]);
    }
  };
  return (
    <Dialog title="Search or run a command" onClose={onClose} class="pal" bare>
      <div class="q">
        <Icon name="search" />
        <input role="combobox" aria-expanded="true" aria-controls="pal-list" aria-activedescendant={flat.length ? `pal-${current}` : undefined} aria-label="Search or run a command"
          placeholder="Search or run a command" autocomplete="off" spellcheck={false} value={text} onInput={(e) => setText(e.currentTarget.value)} onKeyDown={onKey} />
        <kbd aria-hidden="true">Esc</kbd>
      </div>
      <div class="found-list" id="pal-list" role="listbox" aria-label="Results" ref={list}>
        {groups.map((g) => (
          <div role="group" aria-label={g.title} key={g.title}>
            <h3 aria-hidden="true">{g.title}</h3>
            <ul role="presentation">
              {g.entries.map((e) => {
                const i = flat.indexOf(e);
                return <Item key={e.id} id={`pal-${i}`} entry={e} on={i === current} onClick={() => run(e)} />;
              })}
            </ul>
          </div>
        ))}
        {flat.length === 0 && <p class="nothing">No results. Try other words or the name of a tool.</p>}
      </div>
    </Dialog>
  );
}

function Item({ id, entry: e, on, onClick }: { id: string; entry: Entry; on: boolean; onClick: () => void }) {
  return (
    <li id={id} role="option" aria-selected={on} onClick={onClick}>
      {e.lane ? <Lane lane={e.lane} quiet /> : <Icon name={e.icon} />}
      <span class="cut">{e.tool ? <ToolName server={e.tool.server} tool={e.tool.tool} /> : e.text}</span>
      {e.tag && <Tag kind="warm">{e.tag}</Tag>}
      <span class="end">{e.end}{e.key && caps(e.key).map((k) => <kbd key={k}>{k}</kbd>)}</span>
    </li>
  );
}
