import { useState } from "preact/hooks";
import { useStatus } from "../../../data/shared";
import { CopyButton } from "../../../ui/copy";
import { clients } from "./clients";

/** Step 2: what goes where, for the clients that are known. */
export function Connect() {
  const status = useStatus();
  const [picked, pick] = useState(0);
  const address = status.data?.surfaces.find((s) => s.name === "mcp")?.address;
  const client = clients[picked]!;
  return (
    <div>
      <h2>Connect a client</h2>
      <p>One entry in its file, or one command. Then restart it, so that it sees MCPProxy.</p>
      <div class="clients by-hand" role="group" aria-label="Clients">
        {clients.map((c, i) => <button type="button" key={c.name} aria-pressed={i === picked} onClick={() => pick(i)}><b>{c.name}</b><span>{c.how}</span></button>)}
      </div>
      {address && (
        <div class="snippet">
          <p class="soft" id="snippet-where">{client.where}</p>
          <div class="snippet-text">
            <pre class="json wrap" tabIndex={0} aria-label={`For ${client.name}`} aria-describedby="snippet-where">{client.text(address)}</pre>
            <CopyButton text={client.text(address)} label={`Copy it for ${client.name}`} />
          </div>
        </div>
      )}
    </div>
  );
}
