// The color tokens for a canvas, which cannot read CSS variables.

export interface Colours { read: string; write: string; destructive: string; ghost: string; refused: string; failed: string; faint: string; line: string; base: string; paper: string; font: string }

/** Returns the colors of the current theme. */
export function colours(near: HTMLElement): Colours {
  const probe = document.createElement("i");
  near.append(probe);
  const of = (token: string) => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const out = {
    read: of("cool-fill"), write: of("warm-fill"), destructive: of("hot-fill"), ghost: of("line-strong"), refused: of("ink-3"), failed: of("ink"),
    faint: of("ink-3"), line: of("line"), base: of("line-field"), paper: of("bg"), font: `11px ${getComputedStyle(near).fontFamily}`,
  };
  probe.remove();
  return out;
}

/** Returns a pattern of slanted lines in the background color, so that write differs from read without color. */
export function hatch(c: CanvasRenderingContext2D, paper: string, px: number): CanvasPattern | string {
  const size = Math.round(5 * px);
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const t = tile.getContext("2d")!;
  t.strokeStyle = paper;
  t.globalAlpha = 0.6;
  t.lineWidth = 1.1 * px;
  t.beginPath();
  for (const shift of [-size, 0, size]) {
    t.moveTo(shift, size);
    t.lineTo(shift + size, 0);
  }
  t.stroke();
  return c.createPattern(tile, "repeat") ?? "transparent";
}
