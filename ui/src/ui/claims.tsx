import { claimCounts, claimParts } from "../lib/sign";
import { Visible } from "./words";

const most = 8;

/** The changes to sign, one per line; many are counted by kind, with a full list on request. */
export function Claims({ claims }: { claims: readonly string[] }) {
  const list = (
    <ul class="claims" tabIndex={0} aria-label="Changes to sign">
      {claims.map((c) => {
        const { words, values } = claimParts(c);
        return <li key={c}><span class="strong"><Visible text={words} /></span>{values.map((v, i) => <code key={i}><Visible text={v} /></code>)}</li>;
      })}
    </ul>
  );
  if (claims.length <= most) return list;
  return (
    <>
      <ul class="claims" aria-label="Number of changes to sign">{claimCounts(claims).map((c) => <li key={c.words}><span class="strong"><Visible text={c.words} /></span><span>{c.count}</span></li>)}</ul>
      <details><summary>All {claims.length}</summary>{list}</details>
    </>
  );
}
