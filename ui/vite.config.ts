import { defineConfig, loadEnv } from "vite";

// Chunks of their own: pages that need neither do not load them.
function chunk(id: string): string | undefined {
  // Small files that several pages share: each one by itself compresses badly.
  if (/\/src\/(ui|data|lib)\/(who|now|command-line|announce|approve|live|values|resource|head)\.tsx?$/.test(id)) return "shared";
  if (!id.includes("node_modules")) return undefined;
  if (id.includes("/uplot/")) return "uplot";
  if (/\/(@codemirror|@lezer|style-mod|w3c-keyname|crelt|@marijn)\//.test(id)) return "codemirror";
  if (id.includes("/diff/")) return "diff";
  if (id.includes("preact")) return "preact";
  return undefined;
}

export default defineConfig(({ mode, command }) => {
  const daemon = loadEnv(mode, ".", "MCPPROXY_").MCPPROXY_URL ?? "http://127.0.0.1:8080";
  return {
    base: command === "build" ? "./" : "/ui/", // the daemon makes the addresses in index.html relative to the page
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: "../internal/web/dist",
      emptyOutDir: true,
      target: ["chrome123", "firefox120", "safari17.5"], // light-dark()
      modulePreload: { polyfill: false }, // it would be an inline script
      assetsInlineLimit: 0, // no data: addresses, the policy refuses them
      cssCodeSplit: false, // one file compresses better
      sourcemap: false,
      reportCompressedSize: true,
      // The editor has no language: what CodeMirror would parse and indent with is left out.
      rollupOptions: { output: { manualChunks: chunk }, treeshake: { moduleSideEffects: (id) => !/\/(@lezer|@codemirror\/language)\//.test(id) } },
    },
    server: {
      host: "127.0.0.1",
      proxy: {
        "/api": {
          target: daemon,
          changeOrigin: true,
          // The daemon refuses foreign origins; in development the page's is one.
          configure: (proxy) => proxy.on("proxyReq", (out) => out.removeHeader("origin")),
        },
      },
    },
    test: { include: ["test/**/*.test.{ts,tsx}"] },
  };
});
