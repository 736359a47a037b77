import { useState } from "preact/hooks";
import { api, path, ProblemError } from "../../api/client";
import type { Tool, ToolDetail } from "../../api/types";
import { useResource } from "../../data/resource";
import { useActions } from "../../keys";
import { count } from "../../lib/format";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { Drawer, DrawerPart } from "../../ui/drawer";
import { Lane, ToolName } from "../../ui/marks";
import { Empty, Loaded } from "../../ui/parts";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { Hints } from "./correct";
import { Locking } from "./decided";
import { ToolMenu } from "./menu";
import { summary } from "./marked";
import { split } from "./query";
import { Reads } from "./reads";
import { switchable, switchTool } from "./locked";
import { TryIt } from "./try";
import { Why } from "./why";
import { Yours } from "./yours";

export interface Hit { place: number; tool: Tool }

/** One tool: its search match, hints, definition, and a form to call it. */
export function ToolDrawer({ id, hit, turn, onClose, onChanged }: { id: string; hit?: Hit; turn: number; onClose: () => void; onChanged: () => void }) {
  const ref = split(id);
  const one = useResource(ref ? id : null, (signal) => api.get<ToolDetail>(path`/servers/${ref!.server}/tools/${ref!.tool}`, {}, signal), { keep: false, turn });
  const [foot, setFoot] = useState<HTMLElement | null>(null);
  const t = one.data;
  const off = t?.status === "disabled_by_user";
  const canSwitch = t !== undefined && (switchable(t, true) || switchable(t, false));
  const flip = () => void switchTool(t!, off).then(onChanged);
  useActions([{ key: "o", label: off ? "Enable" : "Disable", icon: "off", when: canSwitch, run: flip }]);
  return (
    <Drawer label={id} onClose={onClose} title={<ToolName server={ref?.server} tool={ref?.tool ?? id} />}
      above={t ? <Lane lane={t.lane} guessed={t.guessed} /> : <span class="dim">Tool</span>}
      meta={t && <Visible text={summary(t.description) || t.title || "No description."} />}
      acts={t && <>{canSwitch && <Button kind="quiet" small decides onClick={flip}>{off ? "Enable" : "Disable"}</Button>}<ToolMenu tool={t} onChanged={onChanged} /></>}
      footer={t && !t.status && !t.shadowed_by && <div class="foot-slot" ref={setFoot} />}>
      {one.error instanceof ProblemError && one.error.status === 404 || !ref
        ? <Empty title="Tool not found" acts={<Button href={href("tools")}>View all tools</Button>}>{one.error instanceof ProblemError ? one.error.message : "A tool id has the form server:tool."}</Empty>
        : (
          <Loaded of={one} title="Could not load the tool">
            {(tool) => (
              <>
                {tool.status && <Locking tool={tool} onChanged={onChanged} />}
                {hit && <Why place={hit.place} why={hit.tool.why ?? []} />}
                <Hints tool={tool} onChanged={onChanged} />
                <Yours tool={tool} onChanged={onChanged} />
                <Reads tool={tool} />
                {!tool.status && foot && <TryIt key={tool.trust?.fingerprint ?? id} tool={tool} foot={foot} onCalled={() => setTimeout(one.reload, 1000)} />}
                <Use tool={tool} />
              </>
            )}
          </Loaded>
        )}
    </Drawer>
  );
}

function Use({ tool }: { tool: ToolDetail }) {
  return (
    <DrawerPart title="Usage">
      <p class="soft">{tool.calls ? <><a class="link" href={href("activity", { tool: tool.name, since: "30d" })}>{count(tool.calls, "call")}</a>, last <Time at={tool.last_used} suffix /></> : "Never called."}</p>
    </DrawerPart>
  );
}
