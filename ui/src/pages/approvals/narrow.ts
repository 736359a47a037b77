import { signal } from "@preact/signals";

// The width below which app.css shows one pane at a time.
const query = matchMedia("(max-width: 62rem)");
const narrow = signal(query.matches);
query.addEventListener("change", () => (narrow.value = query.matches));

/** Reports whether the list and the detail are separate pages. */
export const useNarrow = () => narrow.value;
