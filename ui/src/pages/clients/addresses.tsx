import type { Status } from "../../api/types";
import { own } from "../../lib/own";
import { CopyButton } from "../../ui/copy";

const uses: Record<string, string> = {
  mcp: "Six tools to search and call. For every client.",
  "all servers": "Every tool by name. For clients with their own search. Append /read, /write or /destructive for one lane.",
  "one server": "One server, unchanged, with prompts and resources.",
};

/** The addresses for clients, and their purpose. */
export function Addresses({ status }: { status: Status }) {
  const all = status.surfaces.filter((s) => own(uses, s.name));
  return (
    <section class="sec">
      <div class="top"><h2>Addresses</h2></div>
      <table class="plain addrs">
        <caption><span class="vh">Addresses</span></caption>
        <tbody>
          {all.map((s) => (
            <tr key={s.name}>
              <td class="mono w-u" title={s.address}>{s.address.replace("{server}", "…")}</td>
              <td class="soft">{own(uses, s.name)}</td>
              <td class="n w-copy"><CopyButton label={`Copy ${s.address}`} text={s.address.replace("{server}", "NAME")} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The address for every client, as status names it. */
export function mainAddress(status: Status | undefined): string | undefined {
  return status?.surfaces.find((s) => s.name === "mcp")?.address;
}
