// The first run: three steps to a first call.

import type { Server } from "../../../api/types";
import { Button } from "../../../ui/button";
import { Add } from "./add";
import { Ask } from "./ask";
import { Connect } from "./connect";
import "./start.css";

/** Shown while there are no servers, and then until the user leaves it. */
export default function Start({ servers, onEnd }: { servers: Server[]; onEnd: () => void }) {
  const any = servers.length > 0;
  return (
    <div class="page no-pad">
      <div class="start">
        <div class="head">
          <div>
            <h1>Make your first call in three steps</h1>
            <p class="lead">Add your servers here once. All clients reach them through one address. MCPProxy sends no telemetry. It contacts package registries only to install servers.</p>
          </div>
          {any && <div class="acts"><Button kind="quiet" onClick={onEnd}>Go to overview</Button></div>}
        </div>
        <ol class="steps">
          <li class={any ? "step" : "step now"}><span class="dot" aria-hidden="true">1</span><Add servers={servers} /></li>
          <li class={any ? "step now" : "step"}><span class="dot" aria-hidden="true">2</span><Connect /></li>
          <li class="step"><span class="dot" aria-hidden="true">3</span><Ask servers={servers} /></li>
        </ol>
      </div>
    </div>
  );
}
