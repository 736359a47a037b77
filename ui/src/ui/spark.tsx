import { count } from "../lib/format";

/** 24 hours of calls as bars; hours with errors are highlighted. The label has the figures. */
export function Spark({ hours }: { hours: readonly { calls: number; errors: number }[] }) {
  const top = Math.max(1, ...hours.map((h) => h.calls));
  const width = 96 / Math.max(1, hours.length);
  const calls = hours.reduce((n, h) => n + h.calls, 0);
  const errors = hours.reduce((n, h) => n + h.errors, 0);
  return (
    <svg class="spark" viewBox="0 0 96 20" preserveAspectRatio="none" role="img" aria-label={`${count(calls, "call")} in 24 hours, ${errors} failed`}>
      {hours.map((h, i) => {
        const height = h.calls === 0 ? 1 : Math.max(2, (h.calls / top) * 20);
        return <rect key={i} class={h.calls === 0 ? "z" : h.errors ? "b" : undefined} x={i * width} y={20 - height} width={width - 1} height={height} />;
      })}
    </svg>
  );
}
