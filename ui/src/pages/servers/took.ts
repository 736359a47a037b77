import { duration } from "../../lib/format";

/** Returns a call duration as text; the log stores whole milliseconds. */
export const took = (ms: number) => (ms < 1 ? "< 1 ms" : duration(ms));
