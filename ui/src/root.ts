// The paths of MCPProxy, which follow the path of public_url if the page was loaded with it.

/** The path of the UI, such as /ui/ or /mcpproxy/ui/. */
export const root = /^.*?\/ui\//.exec(globalThis.location?.pathname ?? "")?.[0] ?? "/ui/";

/** The path in front of /ui/ and /api/, without a slash at the end. */
export const prefix = root.slice(0, -"/ui/".length);
