import { expect, test } from "vitest";
import { parser } from "../src/lib/sse";

const stream = ": ping\r\n\r\nid: 7\nevent: server.changed\ndata: {\"server\":\"ä😀\"}\n\ndata: a\ndata:b\n\nevent: reset\n\nid\ndata: c\r\n\r\n: end\n\n";
const want = [
  { id: "7", event: "server.changed", data: '{"server":"ä😀"}' },
  { id: "7", event: "message", data: "a\nb" },
  { id: "7", event: "reset", data: "" },
  { id: "", event: "message", data: "c" },
];

test("events are the same, wherever the stream is split", () => {
  for (let size = 1; size <= stream.length; size++) {
    const parse = parser();
    const got = [];
    for (let at = 0; at < stream.length; at += size) got.push(...parse(stream.slice(at, at + size)));
    expect(got).toEqual(want);
  }
});

test("an endless line is an error", () => {
  const parse = parser();
  expect(() => { for (let i = 0; i < 10; i++) parse("x".repeat(1 << 19)); }).toThrow("4 MB");
});
