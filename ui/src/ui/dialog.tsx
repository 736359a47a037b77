import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { explain } from "../api/client";
import { Button } from "./button";

/** A modal dialog, open while it is rendered. Esc, Cancel and a click outside call onClose. */
export function Dialog({ title, onClose, children, class: css = "", bare = false }: {
  title: string; onClose: () => void; children: ComponentChildren; class?: string;
  /** No padding and no visible title. */
  bare?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    ref.current!.showModal();
    return () => opener?.focus?.();
  }, []);
  return (
    <dialog ref={ref} class={css} aria-labelledby={id}
      onCancel={(e) => (e.preventDefault(), onClose())}
      onClick={(e) => e.target === ref.current && onClose()}>
      {bare ? <><h2 class="vh" id={id}>{title}</h2>{children}</> : <div class="dlg"><h2 id={id}>{title}</h2>{children}</div>}
    </dialog>
  );
}

export interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  /** The label of the button: Remove. */
  action: string;
  /** The text that the user must type; absent: nothing. */
  name?: string;
  /** The label of the field for name. */
  nameLabel?: string;
  danger?: boolean;
  /** Whether the fields in children are complete. */
  ready?: boolean;
  /** Runs the action; if it fails, the dialog stays open and shows the error. */
  onConfirm: () => Promise<unknown> | void;
  onClose: () => void;
}

/** Confirms an action; with name, the user must type the name. */
export function Confirm({ title, children, action, name, nameLabel, danger = true, ready: complete = true, onConfirm, onClose }: ConfirmProps) {
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const id = useId();
  const ready = !busy && complete && (name === undefined || typed === name);
  const submit = async (e: Event) => {
    e.preventDefault();
    if (!ready) return;
    setBusy(true);
    try {
      await onConfirm();
      onClose();
    } catch (cause) {
      const { message, hint } = explain(cause);
      setError([message, hint].filter(Boolean).join(" "));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="dlg-form" onSubmit={submit}>
        <div class="soft">{children}</div>
        {name !== undefined && (
          <div>
            <label class="lab" for={id}>{nameLabel ?? "Name"}</label>
            <input class="field mono" id={id} placeholder={name} value={typed} autocomplete="off" spellcheck={false} onInput={(e) => setTyped(e.currentTarget.value)} />
          </div>
        )}
        {error && <p class="error-line" role="alert">{error}</p>}
        <div class="end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={danger ? "danger" : "main"} type="submit" decides disabled={!ready}>{action}</Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Confirm with a required name. */
export const ConfirmTyped = (p: ConfirmProps & { name: string }) => <Confirm {...p} />;
