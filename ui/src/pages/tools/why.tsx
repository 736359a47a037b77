import type { Tool } from "../../api/types";
import { percent } from "../../lib/format";
import { DrawerPart } from "../../ui/drawer";
import { Visible } from "../../ui/words";
import { Score } from "./hits";
import { how } from "./marked";

/** The matching words of the query, with their share of the score. */
export function Why({ place, why }: { place: number; why: NonNullable<Tool["why"]> }) {
  return (
    <DrawerPart title={`Search match, rank ${place}`}>
      <table class="why-t">
        <caption><span class="vh">Matching words</span></caption>
        <tbody>
          {why.map((w, i) => (
            <tr key={i}>
              <td class="w-a"><mark>{w.asked}</mark></td>
              <td><Visible text={w.found.join(", ") || "–"} /><br /><span class="dim">{how(w)}</span></td>
              <td class="w-s">{w.share !== undefined && <Score value={w.share}>{percent(w.share, 1)}</Score>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </DrawerPart>
  );
}
