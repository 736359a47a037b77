import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { Pause } from "../api/types";
import { status, useStatus } from "../data/shared";
import { pauseText, stopped } from "../lib/pause";
import { Button } from "../ui/button";
import { Confirm } from "../ui/dialog";
import { Field } from "../ui/field";
import { Banner } from "../ui/parts";
import { attempt, toast } from "../ui/toast";

/** The button that stops all calls; absent while they are stopped. */
export function PauseButton() {
  const [open, setOpen] = useState(false);
  const { data } = useStatus();
  if (!data || data.pause) return null;
  return (
    <>
      <Button kind="quiet" small icon="off" decides title="Stop all calls until you resume" onClick={() => setOpen(true)}>Pause calls</Button>
      {open && <PauseDialog onClose={() => setOpen(false)} />}
    </>
  );
}

function PauseDialog({ onClose }: { onClose: () => void }) {
  const [reason, setReason] = useState("");
  const pause = async () => {
    const p = await api.post<Pause>("/pause", { reason: reason.trim() });
    toast({ text: stopped(p.cancelled ?? 0, p.running ?? 0) });
    status.reload();
  };
  return (
    <Confirm title="Pause all calls?" action="Pause calls" onConfirm={pause} onClose={onClose}>
      <p class="soft">MCPProxy rejects calls on all surfaces until you resume them. Held and running calls are cancelled; a cancelled call may have taken effect.</p>
      <Field label="Reason" note="Agents see this reason.">
        {(a) => <textarea {...a} rows={2} maxLength={1000} value={reason} onInput={(e) => setReason(e.currentTarget.value)} />}
      </Field>
    </Confirm>
  );
}

/** The banner on every page while calls are paused. */
export function PauseBanner({ pause }: { pause: Pause }) {
  const resume = async () => {
    await attempt(() => api.post("/resume"), { text: "Calls are allowed again." });
    status.reload();
  };
  return <Banner icon="off" bad act={<Button small decides onClick={resume}>Resume calls</Button>}>{pauseText(pause)}</Banner>;
}
