import { signal } from "@preact/signals";

// Where app.css shows one pane at a time.
const query = matchMedia("(max-width: 62rem)");
const narrow = signal(query.matches);
query.addEventListener("change", () => (narrow.value = query.matches));

/** Returns whether list and detail are pages of their own. */
export const useNarrow = () => narrow.value;
