// Makes a picture of a terminal with the output of the demo, line by line.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const colours = {
  light: { back: "#ffffff", text: "#1f2328", dim: "#59636e", command: "#0550ae", good: "#116329", bad: "#cf222e", edge: "#d1d9e0" },
  dark: { back: "#0d1117", text: "#e6edf3", dim: "#9198a1", command: "#79c0ff", good: "#7ee787", bad: "#ff7b72", edge: "#3d444d" },
};

/** Returns the output of `mcpproxy demo --once`, from the first search to the lines after the refusal. */
export async function demoLines(binary) {
  const { stdout } = await promisify(execFile)(binary, ["demo", "--once"], { env: { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: "1" }, maxBuffer: 1 << 20 });
  const lines = stdout.split("\n");
  const end = lines.findIndex((line) => line.startsWith("The user reviews"));
  return ["$ mcpproxy demo --once", ...lines.slice(0, end)].map((line) => (line.length > 112 ? line.slice(0, 111) + "…" : line));
}

/** Saves the picture as webp. */
export async function terminalPicture(browser, lines, colorScheme) {
  const c = colours[colorScheme];
  const colour = (line) => (/^\s+✗/.test(line) ? c.bad : /^\s+→|^\$/.test(line) ? c.command : /^\s+←/.test(line) ? c.good : /^\s+Hint/.test(line) || /^ {4}/.test(line) ? c.dim : c.text);
  const escape = (s) => s.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const html = `<body style="margin:0;background:${c.back}"><pre style="margin:0;padding:20px 24px;display:inline-block;font:13px/1.5 'DejaVu Sans Mono',monospace;border:1px solid ${c.edge};border-radius:8px;box-sizing:border-box">` +
    lines.map((line) => `<span style="color:${colour(line)}">${escape(line) || " "}</span>`).join("\n") + "</pre>";
  const context = await browser.newContext({ viewport: { width: 980, height: 900 }, deviceScaleFactor: 1 });
  try {
    const page = await context.newPage();
    await page.setContent(html);
    const box = await page.locator("pre").boundingBox();
    const cdp = await context.newCDPSession(page);
    const { data } = await cdp.send("Page.captureScreenshot", { format: "webp", quality: 60, captureBeyondViewport: true, clip: { ...box, scale: 1 } });
    return Buffer.from(data, "base64");
  } finally {
    await context.close();
  }
}
