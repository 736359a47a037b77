import type { ActivityRecord } from "../../api/types";
import { bytes, duration } from "../../lib/format";
import { DrawerPart } from "../../ui/drawer";
import { parts } from "./times";

const width = 480;

/** The time of a call in MCPProxy and in the server. */
export function TimePart({ record: r }: { record: ActivityRecord }) {
  const p = parts(r);
  const size = [r.request_bytes > 0 && `${bytes(r.request_bytes)} sent`, r.response_bytes > 0 && `${bytes(r.response_bytes)} received`].filter(Boolean).join(", ");
  if (!p && !r.duration_ms && !size) return null;
  const all = p ? p.own + (p.server ?? 0) : 0;
  const own = all > 0 ? Math.min(width, Math.max(3, (p!.own / all) * width)) : 0;
  const server = r.server_name ?? "The server";
  return (
    <div class="timing">
      <DrawerPart title="Time">
        {p && p.server !== undefined && (
          <svg viewBox={`0 0 ${width} 8`} preserveAspectRatio="none" role="img" aria-label={`${duration(p.own)} of ${duration(all)} in MCPProxy`}>
            <rect class="t-us" width={own} height="8" />
            {own + 1 < width && <rect class="t-them" x={own + 1} width={width - own - 1} height="8" />}
          </svg>
        )}
        <ul>
          {p ? <li>MCPProxy {duration(p.own)}</li> : r.duration_ms > 0 && <li>{duration(r.duration_ms)}</li>}
          {p?.server !== undefined && <li>{server} {p.server > 0 ? duration(p.server) : "less than 1 ms"}</li>}
          {size && <li class="dim">{size}</li>}
        </ul>
      </DrawerPart>
    </div>
  );
}
