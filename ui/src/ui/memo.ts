import { Component, createElement, type FunctionComponent } from "preact";

/** Returns the component, rendered again only when one of its props changes. */
export function memo<P extends object>(component: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const now = this.props as Record<string, unknown>;
      const then = next as Record<string, unknown>;
      return Object.keys(then).some((k) => now[k] !== then[k]) || Object.keys(now).some((k) => !(k in then));
    }
    override render() {
      return createElement(component, this.props as P & { children?: never });
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
