import { Component, type ComponentChildren, type FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useRangeKnown } from "../data/range";
import { useStatus } from "../data/shared";
import { href, place, type PageName } from "../router";
import { Button } from "../ui/button";
import { ErrorPart } from "../ui/parts";
import { pageOf } from "./pages";

const loaded = new Map<PageName, FunctionComponent>();

/** The current page, loaded on first use. */
export function Outlet() {
  const { page } = place.value;
  const known = useRangeKnown(page);
  const [, draw] = useState(0);
  const [error, setError] = useState<unknown>();
  const [again, setAgain] = useState(0);
  useEffect(() => {
    setError(undefined);
    if (!page || loaded.has(page)) return;
    let current = true;
    pageOf(page)!.load().then(
      (m) => {
        loaded.set(page, m.default);
        if (current) draw((n) => n + 1);
      },
      (cause) => current && setError(cause),
    );
    return () => void (current = false);
  }, [page, again]);
  if (!page) return <NotFound />;
  // After an update, the old file of a page no longer exists: a reload fetches the new one.
  if (error) return <ErrorPart title="Could not load this page" error={error} onRetry={() => (again ? location.reload() : setAgain(1))} />;
  const Page = known && loaded.get(page);
  return Page ? <Guard key={page}><Page /></Guard> : null;
}

function NotFound() {
  const status = useStatus();
  return (
    <div class="page">
      <h1>Page not found</h1>
      <p class="lead">MCPProxy {status.data?.version} has no page at this address.</p>
      <div class="sec"><Button href={href("overview")}>Go to overview</Button></div>
    </div>
  );
}

// An error in a page must not break the frame.
class Guard extends Component<{ children: ComponentChildren }, { error?: unknown }> {
  override state: { error?: unknown } = {};
  override componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ error });
  }
  override render() {
    if (this.state.error === undefined) return this.props.children;
    return <ErrorPart title="This page crashed" error={this.state.error} onRetry={() => this.setState({ error: undefined })} />;
  }
}
