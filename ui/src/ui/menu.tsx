import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

/**
 * A button that opens a popover with buttons or links. Arrow keys move, Esc closes and
 * gives the focus back; a click on an item closes it unless the item has data-keep.
 */
export function Menu({ label, name, id, class: css = "btn sm", end = false, role = "menu", children }: {
  label: ComponentChildren;
  /** The name for screen readers, when label is an icon only. */
  name?: string;
  id?: string;
  class?: string;
  /** Aligns the right edges. */
  end?: boolean;
  /** "dialog" when there is more in it than items, such as a field. */
  role?: "menu" | "dialog";
  children: ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const own = useId();

  // The popover has a size and takes focus only in the next frame.
  useLayoutEffect(() => {
    if (!open) return;
    const frame = requestAnimationFrame(() => {
      const p = panel.current!;
      place(p, button.current!, end);
      items(p)[0]?.focus();
    });
    return () => cancelAnimationFrame(frame);
  }, [open]);

  const onKey = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (e.key === "Escape") {
      e.preventDefault();
      panel.current!.hidePopover();
      button.current!.focus();
    }
    if (!step) return;
    e.preventDefault();
    const all = items(panel.current!);
    all[(all.indexOf(document.activeElement as HTMLElement) + step + all.length) % all.length]?.focus();
  };

  return (
    <>
      <button type="button" ref={button} id={id} class={css} aria-haspopup={role} aria-expanded={open} aria-controls={own} aria-label={name} title={name} popoverTarget={own}>{label}</button>
      <div ref={panel} id={own} class="menu" popover="auto" role={role} aria-label={role === "dialog" ? name : undefined} tabIndex={-1} onKeyDown={onKey}
        onBeforeToggle={(e) => setOpen(e.newState === "open")}
        onClick={(e) => {
          const hit = (e.target as Element).closest("button, a");
          if (hit && !hit.closest("[data-keep]")) panel.current!.hidePopover();
        }}>
        {open && children}
      </div>
    </>
  );
}

// Placed by hand: anchors of CSS are not in every browser that has popovers.
function place(panel: HTMLElement, button: HTMLElement, end: boolean): void {
  const b = button.getBoundingClientRect();
  const r = panel.getBoundingClientRect();
  const left = end ? b.right - r.width : b.left;
  const below = b.bottom + 4;
  panel.style.left = `${Math.max(8, Math.min(left, innerWidth - r.width - 8))}px`;
  panel.style.top = `${below + r.height > innerHeight - 8 ? Math.max(8, b.top - r.height - 4) : below}px`;
}

function items(panel: HTMLElement): HTMLElement[] {
  return [...panel.querySelectorAll<HTMLElement>("button, a, input")].filter((el) => !(el as HTMLButtonElement).disabled);
}
