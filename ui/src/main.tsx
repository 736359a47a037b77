import { render } from "preact";
import "./styles/tokens.css";
import "./styles/app.css";
import "./styles/kit.css";
import { explain } from "./api/client";
import { start, takeCode } from "./api/signin";
import { App } from "./app";
import { pageOf } from "./frame/pages";
import { place } from "./router";

// Remove the code from the address before anything is rendered or requested.
const code = takeCode();
// Preloads the file of the page; the outlet reports an error.
pageOf(place.value.page)?.load().catch(() => {});
const error = await start(code).then(() => "", (cause) => {
  const { message, hint } = explain(cause);
  return [message, hint].filter(Boolean).join(" ");
});
const root = document.getElementById("root")!;
root.replaceChildren();
render(<App error={error} />, root);
