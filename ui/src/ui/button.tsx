import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { Icon, type IconName } from "./icon";

export interface ButtonProps {
  children?: ComponentChildren;
  /** main is the one primary action of a screen; danger destroys. */
  kind?: "main" | "danger" | "quiet";
  small?: boolean;
  icon?: IconName;
  /** Drawn as keycap; useActions is what makes it act. */
  cap?: string;
  /** The name of a button that has an icon only. */
  label?: string;
  disabled?: boolean;
  title?: string;
  type?: "button" | "submit";
  /** Makes it a link. */
  href?: string;
  class?: string;
  onClick?: (e: TargetedMouseEvent<HTMLElement>) => void;
  pressed?: boolean;
  id?: string;
}

/** A button, or a link that looks like one. */
export function Button(p: ButtonProps) {
  const kind = p.kind === "main" ? " main-act" : p.kind ? " " + p.kind : "";
  const css = `btn${kind}${p.small ? " sm" : ""}${p.icon && !p.children ? " ico" : ""}${p.class ? " " + p.class : ""}`;
  const inner = <>{p.icon && <Icon name={p.icon} small />}{p.children}{p.cap && <kbd aria-hidden="true">{p.cap}</kbd>}</>;
  if (p.href !== undefined && !p.disabled) return <a class={css} href={p.href} title={p.title} aria-label={p.label} onClick={p.onClick}>{inner}</a>;
  return (
    <button class={css} id={p.id} type={p.type ?? "button"} title={p.title} aria-label={p.label} aria-pressed={p.pressed} disabled={p.disabled} onClick={p.onClick}>
      {inner}
    </button>
  );
}
