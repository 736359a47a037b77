// Package scan finds poisoned definitions of tools, prompts and resources: instructions
// to the model, hidden and confusable Unicode, shadowing of other tools, exfiltration,
// secrets, encoded payloads. It reads every string that a client could see, after
// normalization (normal.go) and decoding (decode.go, uncover.go, respell.go).
//   - Rules (rules.txt, words.txt; rules.go, pattern.go) match phrases and explain each
//     finding with its span. intents.go combines word classes per sentence.
//   - A classifier (phrase*.go, classifier.go) scores sentences with a model from
//     bench/judge. Its findings only ask for a review; weak rules count only where it
//     agrees.
//   - CrossRefs (crossref*.go) finds instructions about tools of other servers.
//
// Guarantees:
//   - The same definition gives the same report, byte for byte; weights and sums are
//     integers.
//   - Its work is bounded. A text that was not read in full, or a rule that failed, is
//     never clean.
//   - Spellings of a tool name (send_mail, sendMail, look-alike letters) are the same
//     name.
//
// It does no I/O and keeps no state but the names of tools. It does not prove that a
// server is safe, and approval decides what follows from a finding.
package scan
