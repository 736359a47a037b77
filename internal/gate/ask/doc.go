// Package ask makes calls wait until a user approves them. A Question asks about one call, and a Lease approves calls
// of a certain kind for some time. Waiter blocks the call until the store contains an answer.
//
// Files: question.go (calls, their keys, questions and answers), lease.go (leases), waiter.go (Waiter), claims.go
// (the claims that users sign).
//
//   - The key of a call covers everything that the user saw or could have seen.
//   - A call continues only if the store confirms that an approval of this call was used, once, or that a lease
//     covers the call. No decision depends on state in memory, so restarts and other instances change nothing.
//   - The first answer counts, and every answer expires.
//   - A call is refused if state cannot be read or stored. The number and time of waiting calls are limited.
//   - The package does not decide which calls need an approval (policy does), and shows no question (ops does).
package ask
