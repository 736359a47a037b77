import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useActions } from "../keys";
import { Button } from "./button";

/**
 * A panel next to a list with the details of one row. Not modal: the list stays in
 * reach, j and k move on. Esc closes, and the focus returns to where it was.
 * It goes into <div class="split open"> (or .bench, .settings) after the list.
 */
export function Drawer({ title, label, above, meta, acts, footer, onMove, onClose, children, class: css = "" }: {
  title: ComponentChildren;
  /** The small line above the title, such as the lane. */
  above?: ComponentChildren;
  /** The name for screen readers. */
  label: string;
  /** The line below the title. */
  meta?: ComponentChildren;
  /** Buttons next to the close button. */
  acts?: ComponentChildren;
  footer?: ComponentChildren;
  /** Draws buttons for the row before and after this one: by is -1 or 1. */
  onMove?: (by: number) => void;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    return () => {
      // Only if the focus was in the drawer.
      if (opener?.isConnected && (!document.activeElement || document.activeElement === document.body)) opener.focus();
    };
  }, []);
  const close = () => {
    if (ref.current?.contains(document.activeElement)) (document.activeElement as HTMLElement).blur();
    onClose();
  };
  useActions([{ key: "Escape", label: "Close", icon: "close", run: close }]);
  const heading = <h2 class="grow cut">{title}</h2>;
  return (
    <aside class={`drawer ${css}`} aria-label={label} ref={ref}>
      <header>
        <div class="row">
          {above ? <div class="grow">{above}</div> : heading}
          {onMove && <Button kind="quiet" small large icon="up" label="Previous" onClick={() => onMove(-1)} />}
          {onMove && <Button kind="quiet" small large icon="down" label="Next" onClick={() => onMove(1)} />}
          {acts}
          <Button kind="quiet" small large icon="close" label="Close" onClick={close} />
        </div>
        {above && heading}
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
