import { useState } from "preact/hooks";
import { clientGuides, type Snippet } from "../../lib/connect";
import { CopyButton } from "../../ui/copy";

/** How each well-known client is connected: one at a time, with what is to be written. */
export function Connect({ address }: { address?: string }) {
  const guides = clientGuides(address);
  const [open, setOpen] = useState(guides[0]!.id);
  const guide = guides.find((g) => g.id === open)!;
  return (
    <section class="sec join">
      <div class="top"><h2>Connect a client</h2></div>
      <p class="soft">What looks passes, what changes something asks: that is what the second part of each sets.</p>
      <div class="chips" role="group" aria-label="Clients">
        {guides.map((g) => <button type="button" class="chip" key={g.id} aria-pressed={g.id === open} onClick={() => setOpen(g.id)}>{g.name}</button>)}
      </div>
      <div class="ways" key={open}>
        <div>
          <h3>Connect {guide.name}</h3>
          {guide.connect.map((s) => <Piece snippet={s} key={s.where} />)}
        </div>
        {guide.permissions && (
          <div>
            <h3>Let reads pass, ask for the rest</h3>
            <Piece snippet={{ where: "Run; it shows what changes in the client's file, asks, and keeps a backup", text: `mcpproxy permissions ${guide.permissions} --write` }} />
          </div>
        )}
      </div>
    </section>
  );
}

function Piece({ snippet }: { snippet: Snippet }) {
  return (
    <figure class="snippet">
      <figcaption><span class="dim">{snippet.where}</span><CopyButton label="Copy" text={snippet.text} /></figcaption>
      <pre class="json" tabIndex={0} aria-label={snippet.where}>{snippet.text}</pre>
      {snippet.note && <p class="same">{snippet.note}</p>}
    </figure>
  );
}
