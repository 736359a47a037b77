// The earlier versions of the file.

import { useState } from "preact/hooks";
import { api, path, type ProblemError } from "../../api/client";
import type { Bound, Config, ConfigVersion } from "../../api/types";
import { now } from "../../data/now";
import { useResource } from "../../data/resource";
import { bytes, number } from "../../lib/format";
import { href } from "../../router";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { Empty, Loaded } from "../../ui/parts";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { Difference } from "./difference";
import { moment } from "./model";

const step = 50;

export interface HistoryProps { file: Config; id: string; turn: unknown; onPutBack: (text: string) => void }

export function History({ file, id, turn, onPutBack }: HistoryProps) {
  const [limit, setLimit] = useState(step);
  const list = useResource(`history ${limit}`, (signal) => api.get<Bound & { versions: ConfigVersion[] }>("/config/history", { limit }, signal), { turn });
  return (
    <Loaded of={list} title="Could not load the history" skeleton={undefined}>
      {({ versions, total }) => {
        if (id) return <Version key={id} file={file} id={id} version={versions.find((v) => v.id === id)} onPutBack={onPutBack} />;
        if (versions.length === 0) return <Empty title="No earlier versions">Each version that was active is kept here.</Empty>;
        return (
          <>
            <ol class="versions">{versions.map((v) => <One key={v.id} version={v} current={v.etag === file.in_force_etag && v === versions[0]} />)}</ol>
            {versions.length < total && <p class="pad-line"><Button small onClick={() => setLimit(limit + step)}>Show more</Button> <span class="dim">{number(total - versions.length)} older</span></p>}
          </>
        );
      }}
    </Loaded>
  );
}

const who = (by: string) => (by === "file" ? "in the file" : `by ${by}`);

function One({ version: v, current }: { version: ConfigVersion; current: boolean }) {
  const some = v.keys.slice(0, 4);
  return (
    <li>
      <a href={href("settings", { view: "history", id: v.id })} data-id={v.id}>
        <span class="when"><Time at={v.at} suffix /></span>
        <span class="what">
          <span class="keys">{some.length > 0 ? <Visible text={some.join(", ")} /> : <span class="dim">Only comments or whitespace</span>}{v.keys.length > some.length && <span class="dim"> and {number(v.keys.length - some.length)} more</span>}</span>
          <span class="dim">Changed <Visible text={who(v.by)} />, {bytes(v.bytes)}{current && ", active"}</span>
        </span>
        <Icon name="right" small />
      </a>
    </li>
  );
}

function Version({ file, id, version, onPutBack }: { file: Config; id: string; version?: ConfigVersion; onPutBack: (text: string) => void }) {
  const one = useResource("version " + id, (signal) => api.get<{ id: string; text: string }>(path`/config/history/${id}`, {}, signal), { keep: false });
  const gone = (one.error as ProblemError | undefined)?.status === 404;
  return (
    <>
      <div class="version-head">
        <a class="back-link" href={href("settings", { view: "history" })}><Icon name="left" small />History</a>
        {version && <p class="grow soft">{moment(version.at, now.value)}, changed <Visible text={who(version.by)} />. Changes since this version:</p>}
        {one.data && one.data.text !== file.text && <Button small decides onClick={() => onPutBack(one.data!.text)}>Restore version</Button>}
      </div>
      {gone ? <Empty title="Version not found">Only the newest versions are kept.</Empty> : (
        <Loaded of={one} title="Could not load the version">
          {({ text }) => <Difference was={text} is={file.text} label="Changes since this version" />}
        </Loaded>
      )}
    </>
  );
}
