// The signature for requests that grant agents more access. client.ts asks for it
// for all pages; frame/permits.tsx shows the dialog.

import { signal } from "@preact/signals";
import { asked, type Asked } from "../lib/presence";
import { prefix } from "../root";
import type { Problem } from "./types";

export const presenceHeader = "MCPProxy-Presence";

/** A request that waits for a signature. */
export interface Asking {
  asked: Asked;
  /** The request, as the statement contains it. */
  request: string;
  method: string;
  route: string;
  body: unknown;
  /** Continues with the signed statement. Without one, the request fails. */
  end: (signed?: string, failed?: unknown) => void;
}

/** The requests that wait for a signature. The first one is shown. */
export const asking = signal<readonly Asking[]>([]);

/** Reports whether a signature resolves the problem. */
export const asks = (p: Problem) => p.code === "PRESENCE_REQUIRED" && asked(p.details) !== undefined;

/** Asks the user to sign a request and returns the signature; throws if the user cancels. */
export function permit(p: Problem, method: string, route: string, url: string, body: unknown, abort?: AbortSignal): Promise<string> {
  const at = new URL(url, location.href);
  return new Promise((resolve, reject) => {
    const one: Asking = {
      asked: asked(p.details)!, request: `${method} ${at.pathname.slice(prefix.length)}${at.search}`, method, route, body,
      end: (signed, failed) => {
        asking.value = asking.value.filter((a) => a !== one);
        abort?.removeEventListener("abort", left);
        if (signed !== undefined) resolve(signed);
        else reject(failed ?? new Error("Canceled. Nothing was changed."));
      },
    };
    const left = () => one.end(undefined, abort?.reason);
    abort?.addEventListener("abort", left);
    asking.value = [...asking.value, one];
  });
}
