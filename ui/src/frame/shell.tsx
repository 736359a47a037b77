import { useState } from "preact/hooks";
import { offline } from "../api/connection";
import { useStatus } from "../data/shared";
import { carried } from "../data/range";
import { useActions } from "../keys";
import { go, href } from "../router";
import { Announcer } from "../ui/announce";
import { copy } from "../ui/copy";
import { Toasts, toast } from "../ui/toast";
import { Attention } from "./attention";
import { Banners } from "./banners";
import { Help } from "./help";
import { More } from "./more";
import { Notices } from "./notices";
import { Outlet } from "./outlet";
import { Palette } from "./palette";
import { pages } from "./pages";
import { Permits } from "./permits";
import { Sidebar } from "./sidebar";
import { switchTheme } from "./theme";
import { TopBar } from "./topbar";

// Focuses the search field of the page; reports whether it has one.
function toSearch(): boolean {
  const field = document.getElementById("page-search");
  field?.focus();
  return field !== null;
}

/** The frame around every page. */
export function Shell() {
  const [sheet, setSheet] = useState<"" | "palette" | "help" | "more">("");
  const close = () => setSheet("");
  const { data } = useStatus();
  const banner = offline.value || !!data?.pause || !!data?.config_error || !!data?.activity.degraded;
  useActions([
    { key: "Ctrl+k", run: () => setSheet("palette") },
    { key: "?", label: "Keyboard shortcuts", icon: "menu", run: () => setSheet("help") },
    { key: "/", label: "Focus search", icon: "search", run: () => toSearch() || setSheet("palette") },
    { key: "c", label: "Copy link to this view", icon: "copy", run: () => void copy(location.href).then((ok) => ok && toast({ text: "Link copied." })) },
    { label: "Toggle theme", icon: "sun", run: switchTheme },
    ...pages.map((p) => ({ key: `g ${p.key}`, run: () => go(href(p.name, carried(p.name))) })),
  ]);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>Skip to content</a>
      <div class={banner ? "app with-banner" : "app"}>
        <Sidebar onMore={() => setSheet("more")} />
        <TopBar onSearch={() => setSheet("palette")} onHelp={() => setSheet("help")} />
        {banner && <Banners />}
        <main class="main" id="main" tabIndex={-1}><Outlet /></main>
      </div>
      {sheet === "palette" && <Palette onClose={close} />}
      {sheet === "help" && <Help onClose={close} />}
      {sheet === "more" && <More onClose={close} />}
      <Permits />
      <Toasts />
      <Announcer />
      <Attention />
      <Notices />
    </>
  );
}
