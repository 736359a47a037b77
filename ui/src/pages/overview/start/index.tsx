// The first run: three steps to a first call.

import type { Server } from "../../../api/types";
import { Button } from "../../../ui/button";
import { Add } from "./add";
import { Ask } from "./ask";
import { Connect } from "./connect";
import "./start.css";

/** Shown while there are no servers, and on until the person leaves it. */
export default function Start({ servers, onEnd }: { servers: Server[]; onEnd: () => void }) {
  const any = servers.length > 0;
  return (
    <div class="page no-pad">
      <div class="start">
        <div class="head">
          <div>
            <h1>Three steps to a first call</h1>
            <p class="lead">Add your servers once, here. Every client then reaches all of them through one address. MCPProxy reports to no one. While a server is installed, it looks up the host name of the package registry.</p>
          </div>
          {any && <div class="acts"><Button kind="quiet" onClick={onEnd}>To the overview</Button></div>}
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
