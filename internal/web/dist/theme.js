// Runs before the first paint, so that the theme does not flash. src/frame/theme.ts writes the choice.
try {
  const theme = localStorage.getItem("mcpproxy.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is refused: the system's theme stands.
}
