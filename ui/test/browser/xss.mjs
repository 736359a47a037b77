// Texts that would act if they were anything but text: 63 attempts, each of which would set
// globalThis.__xss, and the Big List of Naughty Strings (naughty.json, MIT, see naughty.LICENSE).
import { readFileSync } from "node:fs";

const run = "globalThis.__xss=1";
const elsewhere = "http://127.0.0.1:9";

export const attempts = [
  `<script>${run}</script>`, `<script src=${elsewhere}/x.js></script>`, `</script><script>${run}</script>`, `<ScRiPt>${run}</sCrIpT>`, `<script type=module>${run}</script>`,
  `<script\x20type="text/javascript">${run};</script>`, `<<script>${run};//<</script>`, `<script\x00>${run}</script>`, `<svg><script>${run}</script></svg>`, `<svg><script xlink:href=data:,${run}></script></svg>`,
  `<img src=x onerror=${run}>`, `<img src="${elsewhere}/x.png">`, `<img/src/onerror=${run}>`, `"><img src=x onerror="${run}">`, `'><img src=x onerror='${run}'>`,
  `<svg onload=${run}>`, `<svg/onload=${run}>`, `<svg><animate onbegin=${run} attributeName=x dur=1s>`, `<svg><use href="data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg onload=${run} />#x">`, `<svg><a xlink:href="javascript:${run}"><text y=20>x</text></a></svg>`,
  `<body onload=${run}>`, `<input autofocus onfocus=${run}>`, `<select autofocus onfocus=${run}>`, `<textarea autofocus onfocus=${run}>`, `<details open ontoggle=${run}>`,
  `<video><source onerror=${run}></video>`, `<audio src=x onerror=${run}>`, `<marquee onstart=${run}>`, `<object data="javascript:${run}">`, `<embed src="javascript:${run}">`,
  `<iframe src="javascript:${run}"></iframe>`, `<iframe srcdoc="<script>parent.__xss=1</script>"></iframe>`, `<iframe src=${elsewhere}></iframe>`, `<meta http-equiv=refresh content="0;url=javascript:${run}">`, `<meta http-equiv=refresh content="0;url=${elsewhere}">`,
  `<base href="${elsewhere}/">`, `<link rel=stylesheet href=${elsewhere}/x.css>`, `<link rel=prefetch href=${elsewhere}/x>`, `<style>*{background:url(${elsewhere}/x)}</style>`, `<style>@import '${elsewhere}/x.css'</style>`,
  `<p style="background:url(${elsewhere}/x)">x</p>`, `<form action=${elsewhere}><button>x</button></form>`, `<form><button formaction="javascript:${run}">x</button></form>`, `<a href="javascript:${run}">x</a>`, `<a href="java\tscript:${run}" autofocus>x</a>`,
  `javascript:${run}`, `data:text/html,<script>${run}</script>`, `[x](javascript:${run})`, `![x](${elsewhere}/x.png)`, `${elsewhere}/a?b=c`,
  `" onmouseover="${run}" onfocus="${run}" autofocus tabindex=0 x="`, `' onmouseover='${run}' x='`, "`onmouseover=" + run + " x=`", `--><script>${run}</script><!--`, `]]><script>${run}</script>`,
  `</textarea></title></style><script>${run}</script>`, `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=${run}&gt;">`, `<template><script>${run}</script></template>`, `{{constructor.constructor('${run}')()}} \${${run}}`, `__proto__`,
  // Names that every object inherits.
  `constructor`, `toString`, `hasOwnProperty`,
];

export const naughty = JSON.parse(readFileSync(new URL("naughty.json", import.meta.url), "utf8"));

/** Returns the texts in packs of n. */
export const packs = (all, n) => Array.from({ length: Math.ceil(all.length / n) }, (_, i) => all.slice(i * n, (i + 1) * n));

/**
 * Returns what a server says (see servers/scripted.mjs) that has these texts wherever a server may put one:
 * a tool for each, called t0, t1, … besides names that are texts themselves.
 */
export function hostile(texts) {
  const one = texts.map((t) => (Array.isArray(t) ? t.join("\n") : t));
  const tools = one.map((t, i) => ({
    name: `t${i}`, title: t, description: t, annotations: { title: t, readOnlyHint: true, openWorldHint: false },
    inputSchema: { type: "object", properties: { text: { type: "string", title: t, description: t, enum: [t, "x"], default: t, examples: [t] }, [t.slice(0, 60) || "empty"]: { type: "string", description: t } } },
    outputSchema: { type: "object", description: t },
    icons: [{ src: "javascript:globalThis.__xss=1" }, { src: "http://127.0.0.1:9/icon.png" }], _meta: { note: t },
  }));
  const named = one.slice(0, attempts.length).map((t) => ({ name: t.slice(0, 100), description: "Its name is a text.", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }));
  return {
    serverInfo: { name: one[0], title: one[1 % one.length], version: one[2 % one.length], websiteUrl: "javascript:globalThis.__xss=1" },
    instructions: one.slice(0, 40).join("\n"),
    tools: [...tools, ...named],
    prompts: one.slice(0, 60).map((t, i) => ({ name: i % 2 ? `p${i}` : t.slice(0, 100) || "p", title: t, description: t, arguments: [{ name: t.slice(0, 60) || "a", description: t }] })),
    resources: one.slice(0, 60).map((t, i) => ({ uri: i % 2 ? `javascript:globalThis.__xss=${i}` : `file:///r/${i}`, name: t || "r", title: t, description: t, mimeType: t })),
    resourceTemplates: one.slice(0, 20).map((t, i) => ({ uriTemplate: `file:///t/${i}/{x}`, name: t || "t", description: t })),
    stderr: one.flatMap((t) => t.split("\n")),
    results: Object.fromEntries(one.map((t, i) => [`t${i}`, { content: [{ type: "text", text: t }, { type: "resource_link", uri: "javascript:globalThis.__xss=1", name: t }], structuredContent: { [t.slice(0, 60)]: t }, isError: i % 5 === 4 }])),
    errors: Object.fromEntries(one.map((t, i) => [`t${i}`, { code: -32000, message: t }]).filter((_, i) => i % 5 === 3)),
  };
}
