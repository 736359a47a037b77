import type { ServerDetail } from "../../api/types";
import { now } from "../../data/now";
import { percent } from "../../lib/format";
import { own } from "../../lib/own";
import { shares, stretches } from "./model";

// Each state has its own height as well as its color.
const heights: Record<string, number> = { ready: 16, idle: 9, failed: 16, stopped: 2, connecting: 5 };
const words: Record<string, string> = { ready: "ready", idle: "idle", failed: "failed", stopped: "stopped", connecting: "connecting", needs_login: "needs login", needs_secret: "needs a secret", needs_variable: "needs a variable" };

/** The states of the last 24 hours, from the activity log; unknown time is left empty. */
export function Strip({ turns }: { turns: ServerDetail["availability"] }) {
  const all = stretches(turns, now.value);
  if (all.length === 0) return <p class="dim">No data for the last 24 hours.</p>;
  const text = shares(all).map(({ state, share }) => `${own(words, state) ?? state} ${percent(share, 1)}`).join(", ");
  const begun = all[0]!.from > 0.01;
  return (
    <figure>
      <svg class="strip" viewBox="0 0 480 16" preserveAspectRatio="none" role="img" aria-label={`In the last 24 hours: ${text}`}>
        <rect class="s-none" x="0" y="15" width="480" height="1" />
        {all.map((s, i) => {
          const h = own(heights, s.state) ?? 5;
          return <rect key={i} class={`s-${s.state}`} x={s.from * 480} y={16 - h} width={Math.max(1.5, (s.to - s.from) * 480)} height={h} />;
        })}
      </svg>
      <figcaption class="strip-words"><span>24 h ago</span><span>{text.charAt(0).toUpperCase() + text.slice(1)}{begun && <span class="dim"> of the known time</span>}</span><span>now</span></figcaption>
    </figure>
  );
}
