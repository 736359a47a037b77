import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { offline } from "../api/connection";
import { Icon, type IconName } from "./icon";

export interface ButtonProps {
  children?: ComponentChildren;
  /** main is the primary action of a screen; danger is for destructive actions. */
  kind?: "main" | "danger" | "quiet";
  small?: boolean;
  icon?: IconName;
  /** Draws the icon at 16 px: in the head of a drawer. */
  large?: boolean;
  /** The keycap to show; useActions registers the key. */
  cap?: string;
  /** The accessible name of a button with only an icon. */
  label?: string;
  disabled?: boolean;
  /** The button changes something: it is disabled while MCPProxy is unreachable. */
  decides?: boolean;
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
  const cut = p.decides === true && offline.value;
  const disabled = p.disabled || cut;
  const title = cut ? "MCPProxy is unreachable." : p.title;
  const kind = p.kind === "main" ? " main-act" : p.kind ? " " + p.kind : "";
  const css = `btn${kind}${p.small ? " sm" : ""}${p.icon && !p.children ? " ico" : ""}${p.class ? " " + p.class : ""}`;
  const inner = <>{p.icon && <Icon name={p.icon} small={!p.large} />}{p.children}{p.cap && <kbd aria-hidden="true">{p.cap}</kbd>}</>;
  if (p.href !== undefined && !disabled) return <a class={css} href={p.href} title={title} aria-label={p.label} onClick={p.onClick}>{inner}</a>;
  return (
    <button class={css} id={p.id} type={p.type ?? "button"} title={title} aria-label={p.label} aria-pressed={p.pressed} disabled={disabled} onClick={p.onClick}>
      {inner}
    </button>
  );
}
