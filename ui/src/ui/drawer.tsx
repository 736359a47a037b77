import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useActions } from "../keys";
import { Button } from "./button";

/**
 * What stands beside a list and tells more of one row. Not modal: the list stays in
 * reach, j and k move on. Esc closes, and the focus returns to where it was.
 * It goes into <div class="split open"> (or .bench, .settings) after the list.
 */
export function Drawer({ title, label, meta, acts, footer, onClose, children, class: css = "" }: {
  title: ComponentChildren;
  /** What screen readers call it. */
  label: string;
  /** The line below the title. */
  meta?: ComponentChildren;
  /** Buttons beside the cross. */
  acts?: ComponentChildren;
  footer?: ComponentChildren;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    return () => {
      // Only when the focus was in here; who went on elsewhere is not called back.
      if (opener?.isConnected && (!document.activeElement || document.activeElement === document.body)) opener.focus();
    };
  }, []);
  const close = () => {
    if (ref.current?.contains(document.activeElement)) (document.activeElement as HTMLElement).blur();
    onClose();
  };
  useActions([{ key: "Escape", label: "Close", icon: "close", run: close }]);
  return (
    <aside class={`drawer ${css}`} aria-label={label} ref={ref}>
      <header>
        <div class="row"><h2 class="grow cut">{title}</h2>{acts}<Button kind="quiet" small icon="close" label="Close" onClick={close} /></div>
        {meta && <p class="soft">{meta}</p>}
      </header>
      <div class="body">{children}</div>
      {footer && <footer>{footer}</footer>}
    </aside>
  );
}

/** A part of a drawer with a small heading. */
export function DrawerPart({ title, end, children }: { title: string; end?: ComponentChildren; children: ComponentChildren }) {
  return <section class="block-sec"><h3>{title}{end && <span class="end">{end}</span>}</h3>{children}</section>;
}
