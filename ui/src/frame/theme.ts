import { effect } from "@preact/signals";
import { theme } from "../data/prefs";

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
});

/** Toggles between the light and the dark theme. */
export function switchTheme(): void {
  const dark = theme.peek() === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.peek() === "dark";
  theme.value = dark ? "light" : "dark";
}
