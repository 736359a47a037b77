// Package scan finds poisoned definitions of tools, prompts and resources. It looks for instructions to the model, hidden and
// confusable Unicode, shadowing of other tools, exfiltration, secrets and encoded payloads. It reads every string that a client
// could see, after normalization and decoding.
//
// Files:
//   - scan.go: the API; scanner.go: the state of one scan; collect.go: collects the strings of a definition; report.go:
//     findings, severities and the verdict.
//   - match.go: applies all rules to a string, and across the borders between strings.
//   - rules.go, pattern.go: rules that match sequences of words (rules.txt, concepts.txt); words.go splits text into words.
//   - word_classes.go: rules for combinations of word classes in a sentence (orders.txt, intents.txt);
//     sentence_reader.go reads the classes of a sentence.
//   - regexp_rules.go: rules that are regular expressions (spelling.txt).
//   - classifier.go, phrase.go, phrase_model.go: a trained classifier of sentences, from bench/judge.
//   - mention.go: texts that only mention an attack, such as those of a guard.
//   - subject.go: the subject of a definition; prohibitions, examples and statements about this subject are not orders.
//   - hints.go: contradictions between a tool's name and its hints.
//   - normalize.go: the text as a model reads it; hidden_text.go: invisible characters and text out of sight.
//   - uncover.go: looks for hidden text; decode.go, deobfuscate.go and segment.go decode it: base64, escapes, digits for
//     letters, reversed or split words.
//   - crossref_*.go: CrossRefIndex finds instructions about tools of other servers.
//   - passage.go: normalized strings for other packages and for crossref_*.go.
//
// Guarantees:
//   - The same definition gives the same report, byte for byte; weights and sums are integers.
//   - Its work is bounded. A text that was not read in full, or a rule that failed, is never clean.
//   - A finding of the classifier only asks for a review. Weak rules count only where the classifier agrees.
//   - Spellings of a tool name (send_mail, sendMail, confusable letters) are the same name.
//
// It does no I/O and keeps no state but the names of tools. It does not prove that a server is safe, and approval decides what
// follows from a finding.
package scan
