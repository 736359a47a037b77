/** One event of a text/event-stream. */
export interface StreamEvent { id: string; event: string; data: string }

// The length of an unfinished line is limited.
const maxBuffer = 4 << 20;

/**
 * Returns a function that takes chunks of a stream, cut anywhere, and returns the
 * events that they complete. Comments are skipped; an id is valid until the next one.
 */
export function parser(): (chunk: string) => StreamEvent[] {
  let rest = "";
  let id = "";
  let event = "";
  let data: string[] = [];
  return (chunk) => {
    const out: StreamEvent[] = [];
    rest += chunk;
    if (rest.length > maxBuffer) throw new Error("The stream has a line of more than 4 MB.");
    // A carriage return at the end may be half of a line break: it is kept for the next chunk.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop()!;
    for (const line of lines) {
      if (line === "") {
        if (data.length || event) out.push({ id, event: event || "message", data: data.join("\n") });
        event = "";
        data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") event = value;
      else if (field === "data") data.push(value);
      else if (field === "id" && !value.includes("\0")) id = value;
    }
    return out;
  };
}
