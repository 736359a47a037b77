// The editor of the file: CodeMirror, in a shadow root. There its styles are adopted
// style sheets; in the page they would be a <style>, which the policy forbids.

import { history, historyKeymap, insertNewlineKeepIndent } from "@codemirror/commands";
import { EditorState, RangeSetBuilder, StateEffect, StateField, Transaction } from "@codemirror/state";
import { Decoration, EditorView, keymap, lineNumbers, ViewPlugin, type DecorationSet } from "@codemirror/view";
import type { Mistake } from "../../api/types";

export interface Editor {
  text: () => string;
  replace: (text: string) => void;
  mark: (mistakes: readonly Mistake[]) => void;
  /** Scrolls to the line of an error; the focus does not move. */
  show: (m: Mistake) => void;
  goTo: (m: Mistake) => void;
  focused: () => boolean;
  destroy: () => void;
}

// JSON with comments, by tokens: the language packages of CodeMirror weigh 17 KB and know
// no comments. Colors mean lanes or states, so tokens only have shades of gray.
const tokens = /\/\/.*|\/\*[^]*?(?:\*\/|$)|"(?:[^"\\\n]|\\.)*"?|[{}[\],:]+/g;
const shade = { comment: Decoration.mark({ class: "cm-comment" }), key: Decoration.mark({ class: "cm-key" }), value: Decoration.mark({ class: "cm-value" }), sign: Decoration.mark({ class: "cm-sign" }) };
const mostShaded = 1 << 20; // characters; beyond them typing would be slow

function shades({ state, viewport }: EditorView): DecorationSet {
  const out = new RangeSetBuilder<Decoration>();
  if (viewport.to > mostShaded) return Decoration.none;
  // From the beginning, since the text in view may be in a comment.
  const text = state.sliceDoc(0, viewport.to);
  for (const m of text.matchAll(tokens)) {
    const end = m.index + m[0].length;
    if (end <= viewport.from) continue;
    const kind = m[0][0] === "/" ? "comment" : m[0][0] !== '"' ? "sign" : /^\s*:/.test(text.slice(end, end + 80)) ? "key" : "value";
    out.add(m.index, end, shade[kind]);
  }
  return out.finish();
}

const shading = ViewPlugin.define((view) => ({
  all: shades(view),
  update(u) {
    if (u.docChanged || u.viewportChanged) this.all = shades(u.view);
  },
}), { decorations: (p) => p.all });

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--bg)", fontSize: "var(--t-12)" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--ink-3)", border: "0", paddingInlineStart: "8px" },
  ".cm-line": { padding: "0 20px 0 8px" },
  ".cm-bad": { backgroundColor: "var(--hot-soft)", boxShadow: "inset 2px 0 var(--hot-fill)" },
  ".cm-bad-at": { textDecoration: "underline wavy var(--hot)", textDecorationSkipInk: "none" },
  ".cm-value": { color: "var(--ink-2)" },
  ".cm-comment": { color: "var(--ink-3)", fontStyle: "italic" },
  ".cm-sign": { color: "var(--ink-3)" },
});

const setMistakes = StateEffect.define<readonly Mistake[]>();
const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(now, tr) {
    for (const e of tr.effects) if (e.is(setMistakes)) return decorated(tr.state, e.value);
    return now.map(tr.changes);
  },
  provide: (f) => EditorView.decorations.from(f),
});

function decorated(state: EditorState, mistakes: readonly Mistake[]): DecorationSet {
  const all = mistakes.flatMap((m) => {
    if (m.line < 1 || m.line > state.doc.lines) return [];
    const line = state.doc.line(m.line);
    const title = { title: m.message };
    const at = offset(state, m);
    const word = /^("(?:[^"\\]|\\.)*"?|[\w.+-]+|.)/.exec(line.text.slice(at - line.from))?.[0].length ?? 0;
    return [Decoration.line({ class: "cm-bad", attributes: title }).range(line.from), ...(word > 0 ? [Decoration.mark({ class: "cm-bad-at", attributes: title }).range(at, at + word)] : [])];
  });
  return Decoration.set(all, true);
}

// The offset of an error; its column counts characters, not UTF-16 units.
function offset(state: EditorState, m: Mistake): number {
  const line = state.doc.line(Math.min(Math.max(m.line, 1), state.doc.lines));
  return line.from + [...line.text].slice(0, Math.max(m.column - 1, 0)).join("").length;
}

/** Creates an editor in host; onEdit gets each text that the user typed. */
export function mount(host: HTMLElement, text: string, onEdit: (text: string) => void): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const mine = Transaction.userEvent.of("replace.whole");
  const view = new EditorView({
    root, parent: root, doc: text,
    extensions: [
      lineNumbers(), history(), shading, look, marks,
      // Tab leaves the editor, so that the keyboard is not trapped.
      keymap.of([{ key: "Enter", run: insertNewlineKeepIndent }, ...historyKeymap]),
      EditorView.contentAttributes.of({ "aria-label": "Configuration file", spellcheck: "false", autocapitalize: "off", tabindex: "0" }),
      EditorView.updateListener.of((u) => u.docChanged && !u.transactions.some((tr) => tr.isUserEvent("replace.whole")) && onEdit(u.state.doc.toString())),
    ],
  });
  return {
    text: () => view.state.doc.toString(),
    replace: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next }, annotations: mine }),
    mark: (mistakes) => view.dispatch({ effects: setMistakes.of(mistakes) }),
    show: (m) => view.dispatch({ effects: EditorView.scrollIntoView(offset(view.state, m), { y: "center" }) }),
    goTo: (m) => {
      view.dispatch({ selection: { anchor: offset(view.state, m) }, scrollIntoView: true });
      view.focus();
    },
    focused: () => view.hasFocus,
    destroy: () => view.destroy(),
  };
}
