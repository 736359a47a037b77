// The drawing of Chart: axes, scales, cursor and brush are uPlot's; the bars are ours,
// because no library draws "refused outlined, below the line".

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { axisSize, axisValues, barsOf, edges, nice } from "../lib/bars";
import { clock } from "../lib/format";
import { colours, hatch, type Colours } from "./ink";

export interface Bucket { start: string; read: number; write: number; destructive: number; refused: number; failed: number }

/** The data of a chart. Buckets are consecutive and of equal length. */
export interface PlotProps {
  buckets: readonly Bucket[];
  /** The length of a bucket, in seconds. */
  step: number;
  /** In pixels; absent: 150. */
  height?: number;
  /** The lanes in the filter; the others are gray. */
  lanes?: readonly ("read" | "write" | "destructive")[];
  /** Called when the user drags over a time span; absent: dragging is disabled. */
  onRange?: (from: Date, to: Date) => void;
  /** Called when the user clicks a bar. */
  onBucket?: (from: Date, to: Date) => void;
  /** No scale at the side: a small histogram. */
  small?: boolean;
}

export interface Plot { update: () => void; destroy: () => void }

/** Draws the plot of props into box, and redraws it when the size of the box changes. */
export function plot(box: HTMLElement, props: () => PlotProps): Plot {
  let ink = colours(box);
  let u: uPlot;
  const make = () => {
    u = new uPlot(options(box, props, () => ink), data(props()), box);
  };
  make();
  const follow = new ResizeObserver(() => box.clientWidth && u.setSize({ width: box.clientWidth, height: props().height ?? 150 }));
  follow.observe(box);
  const update = () => {
    ink = colours(box);
    u.setData(data(props()));
  };
  // The system's theme may change while the page is open.
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", update);
  return {
    update,
    destroy: () => {
      scheme.removeEventListener("change", update);
      follow.disconnect();
      u.destroy();
    },
  };
}

// uPlot gets the two extents; the bars between them come from the buckets.
function data(p: PlotProps): uPlot.AlignedData {
  const x = p.buckets.map((b) => Date.parse(b.start) / 1000);
  return [x, p.buckets.map((b) => b.read + b.write + b.destructive), p.buckets.map((b) => -(b.refused + b.failed))];
}

function options(box: HTMLElement, props: () => PlotProps, ink: () => Colours): uPlot.Options {
  const { small, step } = props();
  return {
    width: box.clientWidth || 600,
    height: props().height ?? 150,
    padding: [small ? 4 : 8, small ? 0 : 4, 0, 0], // half a label fits above the top line
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: !!props().onRange, y: false, setScale: false } },
    scales: {
      x: { time: true, range: () => edges(props().buckets, props().step) },
      y: { range: (_, low, high) => [Math.min(0, low) * 1.1, Math.max(1, high) * 1.02] },
    },
    series: [{}, { show: true, paths: () => null, points: { show: false } }, { show: true, paths: () => null, points: { show: false } }],
    axes: [
      { size: 22, gap: 4, font: ink().font, stroke: () => ink().faint, grid: { show: false }, ticks: { show: false }, space: 90, values: ticks },
      {
        show: !small, side: 1, size: (_, values) => axisSize(values), gap: 4, font: ink().font, stroke: () => ink().faint, ticks: { show: false },
        grid: { stroke: () => ink().line, width: 1 }, splits: (_, __, ___, top) => nice(top), values: (_, all) => axisValues(all),
      },
    ],
    hooks: {
      draw: [(u) => bars(u, props(), ink())],
      setSelect: [
        (u) => {
          if (u.select.width < 4) return;
          const [from, to] = [u.select.left, u.select.left + u.select.width].map((px) => new Date(u.posToVal(px, "x") * 1000));
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          props().onRange?.(from!, to!);
        },
      ],
      ready: [
        (u) => {
          u.over.addEventListener("click", () => {
            const b = props().buckets[u.cursor.idx ?? -1];
            if (b && u.select.width < 4) props().onBucket?.(new Date(b.start), new Date(Date.parse(b.start) + step * 1000));
          });
        },
      ],
    },
  };
}

// A label that would be cut at an edge is left out. The first one and midnight show the day.
function ticks(u: uPlot, all: number[]): string[] {
  const first = all.findIndex((s) => u.valToPos(s, "x") >= 30);
  return all.map((s, i) => (i < first || u.valToPos(s, "x") > u.over.clientWidth - 14 ? "" : tick(s, i === first)));
}

function tick(seconds: number, first: boolean): string {
  const at = new Date(seconds * 1000);
  const day = first || (at.getHours() === 0 && at.getMinutes() === 0) ? at.toLocaleDateString("en-GB", { weekday: "short" }) + " " : "";
  return day + clock(at).replace(/^0(\d)/, "$1");
}

function bars(u: uPlot, p: PlotProps, ink: Colours): void {
  const c = u.ctx;
  const px = devicePixelRatio;
  c.save();
  c.lineWidth = px;
  for (const bar of barsOf(p.buckets, p.step, p.lanes)) {
    const x = Math.round(u.valToPos(bar.from, "x", true));
    const width = Math.max(px, Math.round(u.valToPos(bar.to, "x", true)) - x - 2 * px);
    const y = u.valToPos(bar.high, "y", true);
    const height = Math.max(px, u.valToPos(bar.low, "y", true) - y - (bar.low === 0 ? 0 : px));
    if (bar.kind === "refused") {
      c.strokeStyle = ink.refused;
      c.strokeRect(x + px / 2, y + px * 1.5, width - px, Math.max(px, height - px));
      continue;
    }
    c.fillStyle = bar.kind === "ghost" ? ink.ghost : ink[bar.kind];
    const top = bar.kind === "failed" ? y + px * 2 : y;
    c.fillRect(x, top, width, height);
    if (bar.kind === "write") {
      c.fillStyle = hatch(c, ink.paper, px);
      c.fillRect(x, top, width, height);
    }
  }
  const zero = Math.round(u.valToPos(0, "y", true)) + 0.5;
  c.strokeStyle = ink.base;
  c.beginPath();
  c.moveTo(u.bbox.left, zero);
  c.lineTo(u.bbox.left + u.bbox.width, zero);
  c.stroke();
  c.restore();
}
