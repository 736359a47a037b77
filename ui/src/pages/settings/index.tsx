// The Settings page: the form and the file side by side.

import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Config } from "../../api/types";
import { useEvents } from "../../data/live";
import { now } from "../../data/now";
import { useResource, type Resource } from "../../data/resource";
import { flag, oneOf, text } from "../../lib/query";
import { useQuery } from "../../router";
import { announce } from "../../ui/announce";
import { Button } from "../../ui/button";
import { ErrorPart, Skeleton } from "../../ui/parts";
import { attempt } from "../../ui/toast";
import { Checks, Places, ThisBrowser } from "./about";
import { useDraft } from "./draft";
import { Mistakes } from "./editor";
import { File, views } from "./file";
import { Form } from "./form";
import { changeCount, heading, lead } from "./model";
import { Presences } from "./presence";
import "./settings.css";

const schema = { view: oneOf(views, ""), id: text(), all: flag(), part: oneOf(["", "diagnostics", "presence", "passkey"], "") };

export default function Settings() {
  const file = useResource("config", (signal) => api.get<Config>("/config", {}, signal));
  const [turn, setTurn] = useState(0);
  useEvents((batch) => {
    if (!batch.some((e) => e.name === "config" || e.name === "reset")) return;
    file.reload();
    setTurn((n) => n + 1);
    announce("The configuration changed.");
  });
  if (!file.data) {
    return (
      <div class="page">
        <h1 class={file.error === undefined ? "vh" : undefined}>Settings</h1>
        {file.error !== undefined ? <ErrorPart title="Could not load the configuration" error={file.error} onRetry={file.reload} /> : file.slow && <Skeleton lines={12} />}
      </div>
    );
  }
  return <Loaded file={file.data} of={file} turn={turn} />;
}

function Loaded({ file, of, turn }: { file: Config; of: Resource<Config>; turn: number }) {
  const [q, setQ] = useQuery(schema);
  const drafting = useDraft(of, file);
  const { draft, validation, mistakes } = drafting;
  return (
    <div class="page fill">
      <div class="split open settings">
        <div class="log">
          <div class="log-head pad">
            <h1>{heading(file, now.value)}</h1>
            <p class="lead">{lead(file, draft, changeCount(draft, validation), now.value)}</p>
            {(file.unconfirmed.length > 0 || file.unconfirmed_why) && (
              <div class="row go"><Button small decides onClick={() => void attempt(async () => of.set(await api.post<Config>("/config/confirm")), { text: "Confirmed. The saved file is active." })}>Confirm changes</Button></div>
            )}
            {file.error && !draft && <section class="mistakes flat" aria-label="Errors in the saved file">{mistakes.length > 0 ? <Mistakes of={mistakes} /> : <p>{file.error}</p>}</section>}
            {of.error !== undefined && <p class="error-line" role="alert">Could not reload the configuration. This may be outdated.</p>}
          </div>
          <div class="page nopt">
            <Form file={file} of={drafting} all={q.all} onAll={(all) => setQ({ all }, { replace: true })} />
            <Presences shown={q.part === "presence" || q.part === "passkey"} setting={q.part === "passkey"} turn={turn} />
            <Checks shown={q.part === "diagnostics"} turn={turn} />
            <ThisBrowser />
            <Places path={file.path} />
          </div>
        </div>
        <File file={file} of={drafting} view={q.view} id={q.id} turn={turn} onView={(view) => setQ({ view, id: "" }, { replace: true })} />
      </div>
    </div>
  );
}
