import { theme } from "../data/prefs";
import { useStatus } from "../data/shared";
import { href } from "../router";
import { Button } from "../ui/button";
import { CopyButton } from "../ui/copy";
import { Dialog } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { Seg } from "../ui/field";
import { pages } from "./pages";
import { useAddress } from "./sidebar";

/** The More dialog on phones: Clients, Settings, the address, the theme. */
export function More({ onClose }: { onClose: () => void }) {
  const address = useAddress();
  const version = useStatus().data?.version;
  return (
    <Dialog title="More" onClose={onClose}>
      <ul class="more">
        {pages.filter((p) => p.later).map((p) => <li key={p.name}><a class="row" href={href(p.name)} onClick={onClose}><Icon name={p.icon} />{p.title}</a></li>)}
      </ul>
      {address && <div class="addr"><code>{address}</code><CopyButton text={address} label="Copy address" /></div>}
      <Seg label="Theme" value={theme.value} onChange={(v) => (theme.value = v)} options={[{ value: "system", label: "System" }, { value: "light", label: "Light" }, { value: "dark", label: "Dark" }]} />
      <div class="end"><span class="dim grow">{version}</span><Button onClick={onClose}>Close</Button></div>
    </Dialog>
  );
}
