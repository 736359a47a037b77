import { render } from "preact";
import "./styles/tokens.css";
import "./styles/app.css";
import "./styles/kit.css";
import { App } from "./app";
import { takeCode } from "./api/signin";

// The code leaves the address before anything is drawn or asked.
const code = takeCode();
render(<App code={code} />, document.getElementById("root")!);
