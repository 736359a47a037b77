import { expect, test } from "vitest";
import type { ParsedServer } from "../src/api/types";
import { bodyOf, commandLine, nameTrouble, words } from "../src/lib/paste";

const pasted: ParsedServer = {
  name: "github", exists: false, notes: [], launch: { protocol: "stdio", command: "npx", args: ["-y", "server"], env: ["GITHUB_TOKEN"] },
  add: { name: "github", command: "npx", args: ["-y", "--key=abc"], env: { GITHUB_TOKEN: "ghp_x", HOME: "/h" } },
  secrets: [
    { place: "env", name: "GITHUB_TOKEN", kind: "github-token", suggestion: "${env:GITHUB_TOKEN}" },
    { place: "args", name: "1", kind: "secret", suggestion: "--key=${env:GITHUB_KEY}" },
  ],
};

test("a secret stays as pasted until a person wants the reference", () => {
  expect(bodyOf(pasted)).toEqual(pasted.add);
  expect(bodyOf(pasted, { hidden: ["env GITHUB_TOKEN"] }).env).toEqual({ GITHUB_TOKEN: "${env:GITHUB_TOKEN}", HOME: "/h" });
  expect(bodyOf(pasted, { hidden: ["args 1"], name: "gh" })).toMatchObject({ name: "gh", args: ["-y", "--key=${env:GITHUB_KEY}"] });
  expect((pasted.add.env as Record<string, string>).GITHUB_TOKEN).toBe("ghp_x"); // what was parsed is not touched
});

test("a command line is what a person would type, and is read back", () => {
  const argv = ["sh", "-c", "echo 'a  b' \"c\" $X \\", "", "--x=~/y", "a\u00a0b"];
  const line = commandLine({ command: argv[0]!, args: argv.slice(1) });
  expect(line).toMatch(/^sh -c '/);
  expect(words(line)).toEqual(argv);
  expect(words(`npx -y "a \\"b\\"" c\\ d  `)).toEqual(["npx", "-y", 'a "b"', "c d"]);
  expect(() => words("npx 'a")).toThrow("not closed");
  expect(commandLine({ url: "https://x/mcp" })).toBe("https://x/mcp");
});

test("names are one name whatever their case", () => {
  expect(nameTrouble("GitHub", ["github"])).toContain("github");
  expect(nameTrouble("", [])).not.toBe("");
  expect(nameTrouble("a", ["b"])).toBe("");
});
