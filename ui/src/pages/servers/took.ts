import { duration } from "../../lib/format";

/** Returns a time of calls, which the log counts in whole milliseconds. */
export const took = (ms: number) => (ms < 1 ? "< 1 ms" : duration(ms));
