// The list of items: sections, and in long ones a row for each server.

import { useEffect, useRef, useState } from "preact/hooks";
import { count, number } from "../../lib/format";
import { actorWords } from "../../lib/who";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { Lane, Tag } from "../../ui/marks";
import { AnswerTime, Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { grouped, hasFindings, isDefinition, why, type Item, type Section } from "./model";

interface Props {
  list: readonly Section[];
  current: string;
  link: (i: Item) => string;
}

export function Inbox({ list, current, link }: Props) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string, on: boolean) => setOpen((o) => new Set(on ? [...o, key] : [...o].filter((k) => k !== key)));
  return (
    <div class="scroll inbox">
      {list.map((s) => {
        const groups = grouped(s.items);
        const has = s.items.some((i) => i.key === current);
        if (s.closed) return <Fold key={s.title} section title={s.title} items={s.items} open={open.has(s.title) || has} onOpen={(on) => toggle(s.title, on)} current={current} link={link} />;
        return (
          <section key={s.title}>
            <h2>{s.title}{groups && <span class="num"> {number(s.items.length)}</span>}</h2>
            {groups
              ? groups.map((g) => {
                if (g.items.length < few) return <ul key={g.server}>{g.items.map((i) => <Row key={i.key} item={i} current={i.key === current} href={link(i)} />)}</ul>;
                const key = `${s.title} ${g.server}`;
                return <Fold key={key} title={g.server} items={g.items} open={open.has(key)} onOpen={(on) => toggle(key, on)} current={current} link={link} />;
              })
              : <ul>{s.items.map((i) => <Row key={i.key} item={i} current={i.key === current} href={link(i)} />)}</ul>}
          </section>
        );
      })}
    </div>
  );
}

const step = 100;
const few = 4; // fewer items of a server are listed one by one

// A row for several items. It opens automatically when the keyboard moves into it.
function Fold({ title, section = false, items, open, onOpen, current, link }: { title: string; section?: boolean; items: readonly Item[]; open: boolean; onOpen: (on: boolean) => void; current: string; link: (i: Item) => string }) {
  const at = items.findIndex((i) => i.key === current);
  // The rows that are drawn; they follow the keyboard.
  const [drawn, setDrawn] = useState({ from: 0, to: step });
  const from = at >= 0 && (at < drawn.from || at >= drawn.to) ? Math.max(0, at - step / 4) : drawn.from;
  const to = from === drawn.from ? drawn.to : from + step;
  useEffect(() => {
    if (at >= 0 && !open) onOpen(true);
  }, [at >= 0]);
  useEffect(() => setDrawn({ from, to }), [from, to]);
  const found = section ? 0 : items.filter(hasFindings).length;
  return (
    <>
      <button type="button" class={section ? "fold section" : "fold"} aria-expanded={open} onClick={() => onOpen(!open)}>
        <Icon name={open ? "down" : "right"} small />
        <span class={section ? "cut" : "cut tool"}><Visible text={title} /></span>
        <span class="row">{found > 0 && <Tag kind="warm">{number(found)} with findings</Tag>}<span class="age">{number(items.length)}</span></span>
      </button>
      {open && (
        <ul>
          {from > 0 && <li class="more-rows"><Button kind="quiet" small onClick={() => setDrawn({ from: Math.max(0, from - step), to })}>{`Show ${Math.min(step, from)} previous`}</Button></li>}
          {items.slice(from, to).map((i) => <Row key={i.key} item={i} current={i.key === current} href={link(i)} />)}
          {to < items.length && <li class="more-rows"><Button kind="quiet" small onClick={() => setDrawn({ from, to: to + step })}>{`Show ${Math.min(step, items.length - to)} more of ${number(items.length)}`}</Button></li>}
        </ul>
      )}
    </>
  );
}

function Row({ item: i, current, href }: { item: Item; current: boolean; href: string }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (current) row.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <li ref={row}>
      <a href={href} aria-current={current ? "true" : undefined}>
        <span class="cut"><span class="tool">{i.kind === "server" ? i.server : <><span class="sv">{i.server}:</span><Visible text={i.name || "instructions"} /></>}</span></span>
        {i.kind === "call" ? <span class="age"><AnswerTime call={i.call} /></span> : i.since ? <Time class="age" at={i.since} /> : <span />}
        <Why item={i} />
        <Mark item={i} />
      </a>
    </li>
  );
}

function Why({ item: i }: { item: Item }) {
  if (i.kind === "call") return <span class="why cut"><Lane lane={i.call.lane} />, <Visible text={i.call.client_name || actorWords(i.call.actor)} /></span>;
  if (i.kind !== "server" && i.kind !== "tool" && i.kind !== "instructions") return <span class="why cut">{i.kind.charAt(0).toUpperCase() + i.kind.slice(1)}</span>;
  const text = why(i);
  if (i.kind === "tool" && i.lane && (i.reason !== "changed" || !text)) return <span class="why cut"><Lane lane={i.lane} guessed={i.guessed} /></span>;
  return <span class="why cut"><Visible text={text || "Server instructions"} /></span>;
}

function Mark({ item: i }: { item: Item }) {
  if (i.kind === "server") return i.findings > 0 ? <Tag kind="warm">{count(i.findings, "finding")}</Tag> : <Tag>{i.stage === "launch" ? "launch" : i.stage === "approved" ? "lost" : "review"}</Tag>;
  if (!isDefinition(i)) return null;
  if (i.verdict === "block") return <Tag kind="hot">{count(i.findings.length, "finding")}</Tag>;
  if (i.loosened.length) return <Tag kind="warm">relaxed</Tag>;
  if (i.verdict !== "clean") return <Tag kind="warm">{i.findings.length ? count(i.findings.length, "finding") : "not scanned"}</Tag>;
  return null;
}
