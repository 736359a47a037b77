import { useEffect } from "preact/hooks";
import { onRead } from "../api/events";
import { notices } from "../data/prefs";
import { noticeText } from "../lib/notice";
import { go, href } from "../router";

/** Whether this browser can show notifications. */
export const canNotify = typeof Notification !== "undefined";

/** Asks for permission, which browsers allow only after a click. Returns whether it is given. */
export async function permitNotices(): Promise<boolean> {
  return (await Notification.requestPermission()) === "granted";
}

/** Notifies the user of held calls, definitions and logins while the page is hidden. */
export function Notices() {
  useEffect(
    () =>
      onRead((event) => {
        if (event.name !== "activity" || !notices.value || !document.hidden || !canNotify || Notification.permission !== "granted") return;
        const body = noticeText(event.record);
        if (!body) return;
        // The tag replaces the last notification, so a burst shows one.
        const shown = new Notification("MCPProxy", { body, tag: "mcpproxy" });
        shown.onclick = () => {
          window.focus();
          go(href(event.record.type === "server_change" ? "servers" : "approvals"));
          shown.close();
        };
      }),
    [],
  );
  return null;
}
